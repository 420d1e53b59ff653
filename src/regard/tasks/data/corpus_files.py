"""Parallel text from files as people have them: two files, a table, a folder with splits."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard.errors import wrong
from regard.tasks.data.pairs import Corpus, SentencePair
from regard.tasks.data.split_notes import describe_overlaps
from regard.tasks.data.splits import check_enough, exclude_overlaps, normalize_text, split_corpus
from regard.tasks.data.text_files import locate_data, read_aligned, read_table

VALIDATION = ("val", "dev")  # valid and validation begin so too


def load_parallel_files(source: Path, target: Path) -> Corpus:
    """Read two aligned files, and hold out a part."""
    return describe_cut(split_corpus(*read_aligned(source, target)), f"{source.name} and {target.name}")


def load_parallel_table(path: Path, columns: tuple[int, int] = (0, 1)) -> Corpus:
    """Read a file with a tab between sentence and translation, as Tatoeba has them, and hold out a part."""
    return describe_cut(split_corpus(*read_table(path, columns)), path.name)


def describe_cut(corpus: Corpus, name: str) -> Corpus:
    """Return a corpus with a note on what was held out of its files."""
    held_out = f"{len(corpus.validation):,} pairs for validation and {len(corpus.tests['test']):,} for the test"
    note = f"held out of {name}: {held_out}, by a hash of their text; pairs that share a sentence stay together"
    return replace(corpus, notes=(note, *corpus.notes))


def load_parallel_folder(folder: Path, source: str, target: str) -> Corpus:
    """Load `train.en`, `train.de`, `val.en`, …, with anything between split and language, and `.gz` or not.

    Every split whose name begins with `test` is a test set of its own. If there is no validation or test, a
    part of the training pairs is held out.
    """
    folder = locate_data(folder)
    splits = find_splits(folder, source, target)
    training = [name for name in splits if name.startswith("train")]
    validation = [name for name in splits if name.startswith(VALIDATION)]
    if len(training) != 1 or len(validation) > 1:
        got = f"{folder} with {join_names(training)} to train on and {join_names(validation)} to validate on"
        expected = f"one train*.{source} with train*.{target}, and at most one val*"
        raise wrong("data", got, expected, "keep one of each in the folder, or name the files themselves")
    read = {name: read_aligned(*files) for name, files in splits.items()}
    notes = [note for _, some in read.values() for note in some]
    tests = {shorten_name(name): read[name][0] for name in splits if name.startswith("test")}
    return assemble_corpus(read[training[0]][0], [read[name][0] for name in validation], tests, notes)


def assemble_corpus(
    train: list[SentencePair],
    validation: list[list[SentencePair]],
    tests: dict[str, list[SentencePair]],
    notes: list[str],
) -> Corpus:
    """Return a corpus from the splits there are; those that are missing are cut from the training pairs."""
    cut = None if validation and tests else split_corpus(train, notes)
    if cut is None:
        check_enough(len(train), "to train on")
        found = Corpus(train, validation[0], tests, tuple(notes))
    elif validation:
        found = Corpus(exclude_overlaps(train, cut.tests["test"]), validation[0], cut.tests, cut.notes, cut=True)
    elif tests:
        found = Corpus(exclude_overlaps(train, cut.validation), cut.validation, tests, cut.notes, cut=True)
    else:
        found = cut
    return replace(found, notes=(*found.notes, *describe_shared_pairs(found)))


def describe_shared_pairs(corpus: Corpus) -> list[str]:
    """Return notes on held-out pairs that are also trained on, if case and punctuation are ignored."""
    trained, held_out = corpus.train, {"validation": corpus.validation, **corpus.tests}
    return describe_overlaps(
        "pairs", map(normalize_pair, trained), {name: map(normalize_pair, pairs) for name, pairs in held_out.items()}
    )


def normalize_pair(pair: SentencePair) -> tuple[str, str]:
    """Return both sides without case and punctuation."""
    return normalize_text(pair.source), normalize_text(pair.target)


def find_splits(folder: Path, source: str, target: str) -> dict[str, tuple[Path, Path]]:
    """Return the files of both languages, by the parts of their names before the language."""
    found: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in sorted(folder.iterdir()):
        stem, _, language = path.name.removesuffix(".gz").rpartition(".")
        if path.is_file() and stem:
            found[stem][language] = path
    both = {stem: files for stem, files in sorted(found.items()) if source in files and target in files}
    splits = {stem: (files[source], files[target]) for stem, files in both.items()}
    if not splits:
        languages = sorted({language for files in found.values() for language in files})
        expected = f"files such as train.{source} and train.{target}"
        fix = f"choose two of {', '.join(languages)}" if len(languages) > 1 else "check the path"
        raise wrong("data", f"{folder} without files in both {source} and {target}", expected, fix)
    return splits


def shorten_name(name: str) -> str:
    """Return the name of a split without its processing: test_2016_flickr for `test_2016_flickr.lc.norm.tok`."""
    return name.split(".")[0]


def join_names(names: Sequence[str]) -> str:
    """Return the names with commas between them; "nothing" if there are none."""
    return ", ".join(names) or "nothing"
