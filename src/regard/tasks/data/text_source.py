"""Parallel text by name: what a command line or a configuration says."""

from dataclasses import dataclass
from pathlib import Path

from regard.errors import wrong
from regard.tasks.data.corpus_files import load_parallel_files, load_parallel_folder, load_parallel_table
from regard.tasks.data.dates import Dates
from regard.tasks.data.numbers import Numbers
from regard.tasks.data.pairs import ParallelText
from regard.tasks.data.phrases import PHRASES, Phrases
from regard.tasks.data.text_files import locate_data


@dataclass(frozen=True, slots=True)
class TextConfig:
    """Which pairs to learn from. What `source` and `target` mean depends on `text`:

    | text | source | target |
    |---|---|---|
    | `numbers` | language of num2words (en) | another (fr); `digits` is one |
    | `phrases-zh` | English, to Chinese | |
    | `dates` | locales of Babel with commas between (all) | |
    | a folder | language: the end of the file names | another |
    | a file with tabs | number of the column (1) | another (2) |
    | two files with a comma between | | |
    """

    text: str = "numbers"  # numbers, dates, phrases-zh, a folder with splits, a table with tabs, or file,file
    source: str = ""  # language, locales or column
    target: str = ""  # language, locales or column
    size: int = 4000  # pairs in an epoch of generated text
    held_out: int = 500  # pairs for validation and test each, of generated text
    seed: int = 1  # of generated text
    digits: int = 6  # of generated numbers, at most


def open_text(config: TextConfig) -> ParallelText:
    """Return the text that a configuration names."""
    generated = {"size": config.size, "held_out": config.held_out, "seed": config.seed}
    if config.text == "numbers":
        return Numbers(config.source or "en", config.target or "fr", digits=config.digits, **generated)
    if config.text == "dates":
        return Dates(tuple((config.source or "all").split(",")), **generated)
    if config.text == PHRASES:
        return Phrases(**generated)
    if "," in config.text:
        source, _, target = config.text.partition(",")
        return load_parallel_files(Path(source.strip()), Path(target.strip()))
    place = locate_data(Path(config.text))
    if not place.is_dir():
        return load_parallel_table(place, (parse_column(config.source or "1"), parse_column(config.target or "2")))
    if not (config.source and config.target):
        fix = "set source and target, for example to en and de"
        raise wrong("data", f"the folder {place} and no languages", "the two to use", fix)
    return load_parallel_folder(place, config.source, config.target)


def parse_column(name: str) -> int:
    """Return the index of a column that is counted from 1."""
    if not name.isdecimal() or int(name) < 1:
        raise wrong("column", repr(name), "the number of a column, from 1", "use source=1 and target=2")
    return int(name) - 1
