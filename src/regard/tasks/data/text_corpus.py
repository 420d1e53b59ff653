"""A corpus from files of any size: read once as a stream; of large files, the text is then kept in the cache."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from regard.compute.kernels.native.cache import find_folder as cache_folder
from regard.tasks.data.fingerprints import digest
from regard.tasks.data.pair_rows import PairHashes, PairRows, collect_pairs
from regard.tasks.data.pairs import Corpus, SentencePair
from regard.tasks.data.prepared_folder import Facts, describe_files, prepare_folder, show_progress, watch_files
from regard.tasks.data.row_files import RowWriter, load_array, open_rows, save_array
from regard.tasks.data.rows import Array
from regard.tasks.data.text_files import CompletePairs, Report, check_plain_file, report_nothing

LARGE = 2**24  # bytes of files: what is smaller is read again in a few seconds, and is not kept
TEXT, TRAIN, VALIDATION, TEST = "text", "train", "validation", "test"


class TextPart(NamedTuple):
    """Files that belong together, how their pairs are read, and what notes call them."""

    paths: tuple[Path, ...]
    read: Callable[[Report], Iterator[SentencePair]]
    name: str


class PairTable(NamedTuple):
    """The pairs of all parts as rows, their hashes, and which rows are of which part."""

    pairs: PairRows
    hashes: PairHashes
    places: Mapping[str, range]
    notes: tuple[str, ...]


class CorpusParts(NamedTuple):
    """The numbers of the pairs that are trained on and of those that are held out, and notes on them."""

    train: Array
    validation: Array
    tests: Mapping[str, Array]
    notes: tuple[str, ...] = ()
    cut: bool = False


class TextFiles(NamedTuple):
    """Text by the names of its parts, and how it is divided into training, validation and tests."""

    parts: Mapping[str, TextPart]
    divide: Callable[[PairTable], CorpusParts]
    form: str = ""  # which columns are read

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return [path for part in self.parts.values() for path in part.paths]


@dataclass(frozen=True)
class StoredCorpus(Corpus):
    """A corpus whose text is in a folder of the cache."""

    folder: Path = Path()
    known_fingerprint: str = ""

    @property
    def fingerprint(self) -> str:
        """The hash of the content that was computed when the folder was made."""
        return self.known_fingerprint


def load_corpus(files: TextFiles) -> Corpus:
    """Return the corpus of some files: in memory if they are small, else from the cache, where it is made if needed."""
    for path in files.paths:
        check_plain_file(path)
    size = sum(path.stat().st_size for path in files.paths)
    if size < LARGE:
        table, parts = read_parts(files, RowWriter("uint8"), report_nothing)
        train, validation, *tests = map(table.pairs.select, (parts.train, parts.validation, *parts.tests.values()))
        return Corpus(train, validation, dict(zip(parts.tests, tests, strict=True)), parts.notes, parts.cut)
    facts = {"files": describe_files(files.paths), "parts": list(files.parts), "form": files.form}
    known = prepare_folder(folder := find_store(files), facts, lambda place: store_corpus(files, place, size))
    return open_corpus(folder, known)


def find_store(files: TextFiles) -> Path:
    """Return the folder of the cache for some files: another version of them takes its place."""
    named = "\n".join([files.form, *files.parts, *(str(path.resolve()) for path in files.paths)])
    key = hashlib.blake2b(named.encode(errors="surrogateescape"), digest_size=8).hexdigest()
    return cache_folder() / "text" / f"{files.paths[0].name.split('.')[0][:40]}-{key}"


def read_parts(files: TextFiles, writer: RowWriter, report: Report) -> tuple[PairTable, CorpusParts]:
    """Read all pairs that have text on both sides, and divide them."""
    found = {name: CompletePairs(part.read(report), part.name) for name, part in files.parts.items()}
    try:
        pairs, hashes = collect_pairs(chain.from_iterable(found.values()), writer)
    finally:
        writer.close()
    ends = numpy.cumsum([part.kept for part in found.values()]).tolist()
    places = {name: range(end - part.kept, end) for (name, part), end in zip(found.items(), ends, strict=True)}
    table = PairTable(pairs, hashes, places, tuple(note for part in found.values() for note in part.notes))
    return table, files.divide(table)


def store_corpus(files: TextFiles, place: Path, size: int) -> Facts:
    """Write the text of a corpus, and which pairs are in which part, to a folder; return what is known about it."""
    with watch_files(files.paths), show_progress(f"reading {size / 1e6:,.0f} MB of text", size) as report:
        parts = read_parts(files, RowWriter("uint8", place / TEXT), report)[1]
    tests = {f"{TEST}-{number}": part for number, part in enumerate(parts.tests.values())}
    for name, part in {TRAIN: parts.train, VALIDATION: parts.validation, **tests}.items():
        save_array(place / f"{name}.npy", part.astype(numpy.uint32))
    train, validation = (PairRows(open_rows(place / TEXT, part)) for part in (parts.train, parts.validation))
    fingerprint = digest(chain(iterate_bytes(train), iterate_bytes(validation)))
    return {"fingerprint": fingerprint, "tests": list(parts.tests), "notes": list(parts.notes), "cut": parts.cut}


def iterate_bytes(pairs: PairRows) -> Iterator[bytes]:
    """Yield the bytes of all pairs in their order: of neighbors in the file, at once."""
    rows = pairs.rows
    chosen = numpy.asarray(rows.chosen, dtype=numpy.int64)
    for part in numpy.split(chosen, numpy.flatnonzero(numpy.diff(chosen) != 1) + 1):
        for begin in range(0, len(part), 2**13):
            some = part[begin : begin + 2**13]
            yield rows.values[rows.offsets[some[0]] : rows.offsets[some[-1] + 1]].tobytes()


def open_corpus(folder: Path, known: Mapping[str, Any]) -> StoredCorpus:
    """Return the corpus of a folder that `store_corpus` made."""
    names: Sequence[str] = known["tests"]
    files = [TRAIN, VALIDATION, *(f"{TEST}-{number}" for number in range(len(names)))]
    text = open_rows(folder / TEXT)
    train, validation, *tests = (PairRows(text.restrict(load_array(folder / f"{name}.npy"))) for name in files)
    return StoredCorpus(
        train,
        validation,
        dict(zip(names, tests, strict=True)),
        tuple(known["notes"]),
        known["cut"],
        folder=folder,
        known_fingerprint=known["fingerprint"],
    )
