"""Sequences of letters and what becomes of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from string import ascii_lowercase

import numpy as np
import torch

from regard.errors import wrong
from regard.tasks.data import BEGIN, END, PADDING, pad
from regard.tasks.inversion.config import Data, Rule
from regard.tasks.tabular import Sets, Tensors

FIRST = END + 1  # the number of the letter a
HELD_OUT = 2**31  # seeds from here on are those of sequences that are never learned from


def rewritten(numbers: Sequence[int], rule: Rule) -> list[int]:
    """What the rule makes of a sequence.

    >>> rewritten([3, 1, 2], "invert"), rewritten([3, 1, 2], "copy"), rewritten([3, 1, 2], "sort")
    ([2, 1, 3], [3, 1, 2], [1, 2, 3])
    """
    return {"invert": list(numbers)[::-1], "copy": list(numbers), "sort": sorted(numbers)}[rule]


def drawn(data: Data, count: int, lengths: tuple[int, int], seed: int) -> list[list[int]]:
    """So many sequences at random, of lengths from the first to the second."""
    random = np.random.default_rng([data.seed, seed])
    sizes = random.integers(lengths[0], lengths[1] + 1, count)
    return [random.integers(FIRST, FIRST + data.symbols, size).tolist() for size in sizes]


def tensors(rows: Sequence[Sequence[int]], rule: Rule) -> Tensors:
    """Sources closed by END, targets between BEGIN and END, and the lengths of both."""
    sources = [[*row, END] for row in rows]
    targets = [[BEGIN, *rewritten(row, rule), END] for row in rows]
    lengths = [torch.tensor([len(row) for row in side]) for side in (sources, targets)]
    return pad(sources, PADDING), lengths[0], pad(targets, PADDING), lengths[1]


def sets_of(data: Data) -> Sets:
    """New sequences in each epoch; tests on the lengths that are trained, and on two ranges beyond."""

    def training(epoch: int) -> Tensors:
        return tensors(drawn(data, data.items, (data.shortest, data.longest), epoch), data.rule)

    held = partial(drawn, data, data.held_out)
    longest = data.longest
    ranges = [(data.shortest, longest), (longest + 1, longest + longest // 2 + 1), (2 * longest, 2 * longest)]
    tests: Mapping[str, Tensors] = {
        named(low, high): tensors(held((low, high), HELD_OUT + place), data.rule)
        for place, (low, high) in enumerate(ranges)
    }
    return Sets(training, tensors(held(ranges[0], HELD_OUT + len(ranges)), data.rule), tests)


def named(low: int, high: int) -> str:
    return f"length {low}" if low == high else f"lengths {low} to {high}"


def spelled(numbers: Sequence[int]) -> str:
    """Letters for numbers."""
    return "".join(ascii_lowercase[number - FIRST] for number in numbers if number >= FIRST)


def numbers_of(text: str, data: Data) -> list[int]:
    """Numbers for letters, or a sentence on what is none of the alphabet."""
    letters = ascii_lowercase[: data.symbols]
    bad = next((letter for letter in text if letter not in letters), None)
    if bad is not None or not text:
        got = repr(bad) if bad else "nothing"
        raise wrong("item", got, f"letters from a to {letters[-1]}", f"write {letters[:3]}, say")
    return [FIRST + letters.index(letter) for letter in text]
