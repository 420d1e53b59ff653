"""Sequences of letters, and the rules that rewrite them."""

from collections.abc import Callable, Sequence
from string import ascii_lowercase

from regard.errors import wrong
from regard.tasks.data import BEGIN, END
from regard.tasks.data.batches import pad_rows
from regard.tasks.data.generated_data import Split, draw_split, make_random
from regard.tasks.inversion.config import InversionData, Rule
from regard.tasks.tensor_task import DataSplits, Tensors

FIRST = END + 1  # the token id of the letter a


def apply_rule(numbers: Sequence[int], rule: Rule) -> list[int]:
    """Return what the rule makes of a sequence.

    >>> apply_rule([3, 1, 2], "invert"), apply_rule([3, 1, 2], "copy"), apply_rule([3, 1, 2], "sort")
    ([2, 1, 3], [3, 1, 2], [1, 2, 3])
    """
    return {"invert": list(numbers)[::-1], "copy": list(numbers), "sort": sorted(numbers)}[rule]


def draw_sequences(
    data: InversionData, split: Split, count: int, lengths: tuple[int, int], name: str
) -> list[list[int]]:
    """Return `count` sequences of a split, of lengths from the first to the second.

    A sequence belongs to one split by its hash: a few letters make so few short sequences that another seed alone
    would test on what was trained on. Held-out sequences do not repeat, and may be fewer if there are no more.
    """
    random, letters = make_random(data.seed, split, name), range(FIRST, FIRST + data.symbols)

    def draw() -> tuple[str, Callable[[str], list[int]]]:
        row = random.choices(letters, k=random.randint(*lengths))
        return decode_letters(row), lambda _: row

    rows = list(draw_split(split, count, draw, decode_letters))
    if not rows:
        got = f"{data.symbols} letters, of which no sequence of {name_lengths(*lengths)} is for {split}"
        raise wrong("data.symbols", got, "enough for every split", "use 10, or longer sequences")
    return rows


def to_tensors(rows: Sequence[Sequence[int]], rule: Rule) -> Tensors:
    """Return sources closed by END, targets between BEGIN and END, and the lengths of both."""
    sources = [[*row, END] for row in rows]
    targets = [[BEGIN, *apply_rule(row, rule), END] for row in rows]
    return (*pad_rows(sources), *pad_rows(targets))


def generate_splits(data: InversionData) -> DataSplits:
    """Return new sequences for each epoch, and tests on the lengths that are trained and on two ranges beyond."""
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
    """Return a range of lengths in words."""
    return f"length {low}" if low == high else f"lengths {low} to {high}"


def decode_letters(ids: Sequence[int]) -> str:
    """Return the letters of token ids."""
    return "".join(ascii_lowercase[id - FIRST] for id in ids if id >= FIRST)


def encode_letters(text: str, data: InversionData) -> list[int]:
    """Return the token ids of letters; raise if one is not in the alphabet."""
    letters = ascii_lowercase[: data.symbols]
    bad = next((letter for letter in text if letter not in letters), None)
    if bad is not None or not text:
        got = repr(bad) if bad else "nothing"
        raise wrong("item", got, f"letters from a to {letters[-1]}", f"write {letters[:3]}, say")
    return [FIRST + letters.index(letter) for letter in text]
