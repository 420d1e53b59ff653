"""Where the pairs of a translator come from, as a configuration names it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regard.errors import wrong
from regard.tasks.data import Dates, Numbers, Pair, ParallelText, from_files, from_folder, from_table
from regard.tasks.data.reading import located, read_aligned, read_table

EMBEDDED = ("dates", "numbers")
SAMPLE = {"dates": 24_000, "numbers": 4_000}  # pairs from which a vocabulary is made: enough for the rarest script


@dataclass(frozen=True, slots=True)
class Drawing:
    """How much of the embedded text, and of which kind."""

    digits: int = 6  # numbers have at most so many
    locales: tuple[str, ...] = ("all",)  # of dates, such as zh, de, en
    size: int = 4000  # new pairs an epoch
    held_out: int = 500  # pairs for validation, and as many for the test


@dataclass(frozen=True, slots=True)
class Text:
    """Which text to learn from."""

    origin: tuple[str, ...] = ("numbers",)  # numbers, dates, a folder with splits, a table with tabs, or two files
    source: str = "en"  # language: the ending of the files in a folder, or that of the number words
    target: str = "fr"
    columns: tuple[int, int] = (0, 1)  # of a table: sentence and translation, counted from 0
    drawing: Drawing = field(default_factory=Drawing)

    @property
    def embedded(self) -> bool:
        """Whether it needs no file. A file or folder of that name goes first."""
        return len(self.origin) == 1 and self.origin[0] in EMBEDDED and not Path(self.origin[0]).exists()


def opened(text: Text, seed: int) -> ParallelText:
    """The pairs themselves."""
    if text.embedded:
        drawing = text.drawing
        amount = {"size": drawing.size, "held_out": drawing.held_out, "seed": seed}
        if text.origin[0] == "dates":
            return Dates(drawing.locales, **amount)
        return Numbers(text.source, text.target, digits=drawing.digits, **amount)
    match [Path(name) for name in text.origin]:
        case [source, target]:
            return from_files(source, target)
        case [only] if located(only).is_dir():
            return from_folder(only, text.source, text.target)
        case [only]:
            return from_table(only, text.columns)
    got = f"{len(text.origin)} names"
    expected = "numbers, dates, a folder, a table, or two aligned files"
    raise wrong("text.origin", got, expected, "name the file of the sentences, then that of the translations")


def given_sets(text: Text, split: str) -> Mapping[str, Sequence[Pair]]:
    """Pairs to test on. Files that were named are tested on whole; of a folder, the splits of that name."""
    paths = [Path(name) for name in text.origin]
    if text.embedded or (len(paths) == 1 and located(paths[0]).is_dir()):
        found = opened(text, seed=1)
        return found.tests if split == "test" else {"validation": found.validation}
    read = read_aligned(paths[0], paths[1]) if len(paths) == 2 else read_table(paths[0], text.columns)
    return {paths[0].name.split(".")[0]: read[0]}


def sample(text: ParallelText, origin: str) -> Sequence[Pair]:
    """The pairs that a vocabulary is made from: all there are, or many of those that never end."""
    pairs, epoch = list(text.training(0)), 0
    while origin in SAMPLE and len(pairs) < SAMPLE[origin]:
        epoch += 1
        pairs += text.training(epoch)
    return pairs
