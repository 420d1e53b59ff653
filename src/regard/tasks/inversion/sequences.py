"""Sequences of letters and what becomes of them."""

from collections.abc import Sequence
from string import ascii_lowercase

import torch

from regard.errors import wrong
from regard.tasks.data import BEGIN, END, PADDING, pad
from regard.tasks.data.generated_data import PATIENCE, Split, assign_split, make_random
from regard.tasks.inversion.config import InversionData, Rule
from regard.tasks.tensor_task import DataSplits, Tensors

FIRST = END + 1  # the number of the letter a


def apply_rule(numbers: Sequence[int], rule: Rule) -> list[int]:
    """What the rule makes of a sequence.

    >>> apply_rule([3, 1, 2], "invert"), apply_rule([3, 1, 2], "copy"), apply_rule([3, 1, 2], "sort")
    ([2, 1, 3], [3, 1, 2], [1, 2, 3])
    """
    return {"invert": list(numbers)[::-1], "copy": list(numbers), "sort": sorted(numbers)}[rule]


def draw_sequences(
    data: InversionData, split: Split, count: int, lengths: tuple[int, int], name: str
) -> list[list[int]]:
    """So many sequences of a split, of lengths from the first to the second.

    A sequence belongs to one split for ever, by its hash: a few letters make so few short ones that another seed alone
    would test on what was learned. What is held out has none twice, and may be fewer where there are no more.
    """
    random, rows, seen, tries = make_random(data.seed, split, name), list[list[int]](), set[str](), 0
    letters = range(FIRST, FIRST + data.symbols)
    while len(rows) < count and tries < PATIENCE:
        row, tries = random.choices(letters, k=random.randint(*lengths)), tries + 1
        text = decode_letters(row)
        if assign_split(text) == split and text not in seen:
            rows.append(row)
            tries = 0
            if split != "train":
                seen.add(text)
    if not rows:
        got = f"{data.symbols} letters, of which no sequence of {name_lengths(*lengths)} is for {split}"
        raise wrong("data.symbols", got, "enough for every split", "use 10, or longer sequences")
    return rows


def to_tensors(rows: Sequence[Sequence[int]], rule: Rule) -> Tensors:
    """Sources closed by END, targets between BEGIN and END, and the lengths of both."""
    sources = [[*row, END] for row in rows]
    targets = [[BEGIN, *apply_rule(row, rule), END] for row in rows]
    lengths = [torch.tensor([len(row) for row in side]) for side in (sources, targets)]
    return pad(sources, PADDING), lengths[0], pad(targets, PADDING), lengths[1]


def generate_splits(data: InversionData) -> DataSplits:
    """New sequences in each epoch; tests on the lengths that are trained, and on two ranges beyond."""
    longest = data.longest
    ranges = [(data.shortest, longest), (longest + 1, longest + longest // 2 + 1), (2 * longest, 2 * longest)]

    def draw_epoch(epoch: int) -> Tensors:
        return to_tensors(draw_sequences(data, "train", data.items, ranges[0], str(epoch)), data.rule)

    tests = {
        name_lengths(*lengths): draw_sequences(data, "test", data.held_out, lengths, name_lengths(*lengths))
        for lengths in ranges
    }
    validation = draw_sequences(data, "validation", data.held_out, ranges[0], "")
    notes = [
        f"{name}: {len(rows)} sequences held out, not {data.held_out}: there are no more"
        for name, rows in {"validation": validation, **tests}.items()
        if len(rows) < data.held_out
    ]
    held_out = {name: to_tensors(rows, data.rule) for name, rows in tests.items()}
    return DataSplits(draw_epoch, to_tensors(validation, data.rule), held_out, notes, endless=True)


def name_lengths(low: int, high: int) -> str:
    return f"length {low}" if low == high else f"lengths {low} to {high}"


def decode_letters(numbers: Sequence[int]) -> str:
    """Letters for numbers."""
    return "".join(ascii_lowercase[number - FIRST] for number in numbers if number >= FIRST)


def encode_letters(text: str, data: InversionData) -> list[int]:
    """Numbers for letters, or a sentence on what is none of the alphabet."""
    letters = ascii_lowercase[: data.symbols]
    bad = next((letter for letter in text if letter not in letters), None)
    if bad is not None or not text:
        got = repr(bad) if bad else "nothing"
        raise wrong("item", got, f"letters from a to {letters[-1]}", f"write {letters[:3]}, say")
    return [FIRST + letters.index(letter) for letter in text]
