"""Parallel text from files as people have them: two files, a table, a folder with splits."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy

from regard.errors import wrong
from regard.tasks.data.pair_rows import PairHashes
from regard.tasks.data.pairs import Corpus
from regard.tasks.data.rows import Array
from regard.tasks.data.split_notes import describe_overlap
from regard.tasks.data.splits import check_enough, exclude_overlaps, split_pairs
from regard.tasks.data.text_corpus import CorpusParts, PairTable, TextFiles, TextPart, load_corpus
from regard.tasks.data.text_files import locate_data, read_aligned, read_table

VALIDATION = ("val", "dev")  # valid and validation begin so too
WHOLE = "whole"  # the part of text that is not in parts
MIX = numpy.uint64(0x9E3779B97F4A7C15)  # an odd number, for a hash of two hashes


def load_parallel_files(source: Path, target: Path) -> Corpus:
    """Read two aligned files, and hold out a part."""
    found = locate_data(source), locate_data(target)
    divide = partial(cut_parts, name=f"{source.name} and {target.name}")
    return load_corpus(TextFiles({WHOLE: find_aligned(*found)}, divide))


def load_parallel_table(path: Path, columns: tuple[int, int] = (0, 1)) -> Corpus:
    """Read a file with a tab between sentence and translation, as Tatoeba has them, and hold out a part."""
    found = locate_data(path)
    part = TextPart((found,), partial(read_table, found, columns), found.name)
    return load_corpus(TextFiles({WHOLE: part}, partial(cut_parts, name=path.name), str(columns)))


def find_aligned(source: Path, target: Path) -> TextPart:
    """Return two aligned files as a part of a corpus."""
    return TextPart((source, target), partial(read_aligned, source, target), source.name)


def cut_parts(table: PairTable, *, name: str) -> CorpusParts:
    """Hold out pairs of files that are not in parts, with a note on how; how many is said of every data set."""
    split = split_pairs(table.hashes)
    note = f"held out of {name} by a hash of their text; pairs that share a sentence stay together"
    notes = (note, *table.notes, *split.notes)
    return CorpusParts(split.train, split.validation, {"test": split.test}, notes, cut=True)


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
    tests = [name for name in splits if name.startswith("test")]
    parts = {name: find_aligned(*splits[name]) for name in (*training, *validation, *tests)}
    return load_corpus(TextFiles(parts, partial(assemble_parts, training[0], validation, tests)))


def assemble_parts(training: str, validation: Sequence[str], tests: Sequence[str], table: PairTable) -> CorpusParts:
    """Return the parts of a corpus from its splits; those that are missing are cut from the training pairs."""
    places, notes = {name: numpy.arange(part.start, part.stop) for name, part in table.places.items()}, table.notes
    train, measured = places[training], [places[name] for name in validation]
    held_out = {shorten_name(name): places[name] for name in tests}
    if validation and tests:
        check_enough(len(train), "to train on")
        found = CorpusParts(train, measured[0], held_out, notes)
    else:
        split = split_pairs(table.hashes.select(train))
        own_validation, own_test = train[split.validation], train[split.test]
        if validation or tests:
            train = exclude_overlaps(table.hashes, train, own_test if validation else own_validation)
        else:
            train = train[split.train]
        parts = measured[0] if validation else own_validation, held_out if tests else {"test": own_test}
        found = CorpusParts(train, *parts, (*notes, *split.notes), cut=True)
    return found._replace(notes=(*found.notes, *describe_shared_pairs(table.hashes, found)))


def describe_shared_pairs(hashes: PairHashes, parts: CorpusParts) -> list[str]:
    """Return notes on held-out pairs that are also trained on, if case and punctuation are ignored."""
    both = hashes.sources * MIX + hashes.targets
    held_out: dict[str, Array] = {"validation": parts.validation, **parts.tests}
    notes: list[str] = []
    for name, places in held_out.items():
        shared = int(numpy.isin(both[places], both[parts.train]).sum())
        notes += describe_overlap("pairs", name, shared, len(places))
    return notes


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
