"""Parallel text from files as people have them: two files, a table, a folder with splits."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard.errors import wrong
from regard.tasks.data.pairs import Corpus, Pair
from regard.tasks.data.parts import repeated
from regard.tasks.data.reading import located, read_aligned, read_table
from regard.tasks.data.splitting import bare, check_enough, divided, without

VALIDATION = ("val", "dev")  # valid and validation begin so too


def from_files(source: Path, target: Path) -> Corpus:
    """Two aligned files, of which a part is held out."""
    return divided(*read_aligned(source, target))


def from_table(path: Path, columns: tuple[int, int] = (0, 1)) -> Corpus:
    """A file with a tab between sentence and translation, of which a part is held out. Tatoeba's are such."""
    return divided(*read_table(path, columns))


def from_folder(folder: Path, source: str, target: str) -> Corpus:
    """`train.en`, `train.de`, `val.en`, …, with anything between split and language, and `.gz` or not.

    Every split whose name begins with `test` is a test set of its own. Where there is no validation or test, a
    part of the training pairs is held out.
    """
    folder = located(folder)
    splits = splits_of(folder, source, target)
    training = [name for name in splits if name.startswith("train")]
    validation = [name for name in splits if name.startswith(VALIDATION)]
    if len(training) != 1 or len(validation) > 1:
        got = f"{folder} with {named(training)} to train on and {named(validation)} to validate on"
        expected = f"one train*.{source} with train*.{target}, and at most one val*"
        raise wrong("data", got, expected, "keep one of each in the folder, or name the files themselves")
    read = {name: read_aligned(*files) for name, files in splits.items()}
    notes = [note for _, some in read.values() for note in some]
    tests = {short(name): read[name][0] for name in splits if name.startswith("test")}
    return assembled(read[training[0]][0], [read[name][0] for name in validation], tests, notes)


def assembled(
    train: list[Pair],
    validation: list[list[Pair]],
    tests: dict[str, list[Pair]],
    notes: list[str],
) -> Corpus:
    """A corpus from the splits there are; those that are missing are cut from the training pairs."""
    cut = None if validation and tests else divided(train, notes)
    if cut is None:
        check_enough(len(train), "to train on")
        found = Corpus(train, validation[0], tests, tuple(notes))
    elif validation:
        found = Corpus(without(train, cut.tests["test"]), validation[0], cut.tests, cut.notes, cut=True)
    elif tests:
        found = Corpus(without(train, cut.validation), cut.validation, tests, cut.notes, cut=True)
    else:
        found = cut
    return replace(found, notes=(*found.notes, *shared(found)))


def shared(corpus: Corpus) -> list[str]:
    """Notes on held-out pairs that are trained on too, case and punctuation aside."""
    trained, held_out = corpus.train, {"validation": corpus.validation, **corpus.tests}
    return repeated("pairs", map(alike, trained), {name: map(alike, pairs) for name, pairs in held_out.items()})


def alike(pair: Pair) -> tuple[str, str]:
    """What pairs have in common that differ in case and punctuation only."""
    return bare(pair.source), bare(pair.target)


def splits_of(folder: Path, source: str, target: str) -> dict[str, tuple[Path, Path]]:
    """The files of both languages, by what stands before the language in their names."""
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


def short(name: str) -> str:
    """The name of a split without the steps of its making: `test_2016_flickr.lc.norm.tok` is test_2016_flickr."""
    return name.split(".")[0]


def named(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
