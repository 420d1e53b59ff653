"""Lines of text from files, plain or gzip, and what can be wrong with them."""

import codecs
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, zip_longest
from pathlib import Path
from typing import IO

from regard.datasets import DATASETS_BY_NAME, REGARD_DATA, find_data
from regard.datasets.bounds import get_bound
from regard.datasets.text import clean, decode_text
from regard.errors import wrong
from regard.tasks.data.pairs import SentencePair

TEXT = get_bound("text", "bytes")
STREAM = get_bound("text", "stream")
LINE = get_bound("text", "streamed line")
BLOCK = 2**20  # bytes that are read at once
GZIP = b"\x1f\x8b"
RUNS = re.compile("  +")
Report = Callable[[int], None]  # is given the bytes of files that were read since it was called last


def report_nothing(_: int) -> None:
    """Ignore how far reading has come."""


def locate_data(path: Path) -> Path:
    """Return the file or folder itself, or the one of that name in the data folders; `.gz` is tried."""
    found = find_data(path)
    if found is not None:
        return found
    fix = f"check the path, or set {REGARD_DATA} to the folder that holds it"
    if path.parts and path.parts[0] in DATASETS_BY_NAME:
        fix = f"run regard data get {path.parts[0]}, or give a folder of your own"
    raise wrong("data", f"no {path}", "a file or folder that exists", fix)


def read_lines(path: Path, most: int = TEXT, report: Report = report_nothing) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, without blanks around them; runs of blanks inside become one. Tabs stay."""
    # Only "\n" ends a line: text may hold U+2028 and other characters that splitlines() would split at.
    for line in chain.from_iterable(split_blocks(path, most, report)):
        text = line.rstrip("\r").strip(" ")
        yield RUNS.sub(" ", text) if "  " in text else text


def split_blocks(path: Path, most: int, report: Report) -> Iterator[list[str]]:
    """Yield the lines of a file of at most `most` bytes, many at once."""
    number, rest, blank = 1, b"", True
    for content in read_blocks(path, most, report):
        block, end, rest = (rest + content).rpartition(b"\n")
        if len(rest) > LINE:
            raise wrong(path.name, f"a line of more than {LINE:,} bytes", "one sentence a line", "check the file")
        if end:
            blank = blank and not block.removeprefix(codecs.BOM_UTF8).strip()
            yield decode_text(block, path.name, number).split("\n")
            number += block.count(b"\n") + 1
    if blank and not rest.removeprefix(codecs.BOM_UTF8).strip():
        raise wrong(path.name, "an empty file", "one sentence a line", "check the path and the file's origin")
    if rest:
        yield [decode_text(rest, path.name, number)]


def read_blocks(path: Path, most: int, report: Report = report_nothing) -> Iterator[bytes]:
    """Yield the content of a file of at most `most` bytes, gzipped or not, in blocks."""
    size = before = 0
    with open_unpacked(path) as (file, packed):
        while content := file.read(min(BLOCK, most + 1 - size)):
            size += len(content)
            if size > most:
                raise wrong(path.name, f"more than {most:,} bytes of text", "a smaller file", "cut it into several")
            report(packed.tell() - before)
            before = packed.tell()
            yield content


def read_decompressed(path: Path) -> bytes:
    """Return the content of a file of limited size, gzipped or not."""
    return b"".join(read_blocks(path, TEXT))


@contextmanager
def open_unpacked(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file, gzipped or not, as its first bytes show: yield it unpacked, and as it lies on the disk."""
    check_plain_file(path)
    try:
        with path.open("rb") as file:
            zipped = file.read(len(GZIP)) == GZIP
            file.seek(0)
            yield gzip.GzipFile(fileobj=file) if zipped else file, file  # type: ignore[misc]  # a GzipFile reads too
    except FileNotFoundError:
        raise wrong("data", f"no file {path}", "a file that exists", "check the path") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise wrong(path.name, f"a damaged gzip file ({error})", "a whole one", "fetch it again") from None
    except OSError as error:
        raise wrong(path.name, f"'{error.strerror}'", "a file that can be read", "check the path") from None


def check_plain_file(path: Path, name: str = "data") -> None:
    """Raise if a path is not a plain file: reading a pipe would wait for ever, a device never ends."""
    if path.is_dir():
        raise wrong(name, f"{path}, which is a folder", "a file", "name a file in it")
    if path.exists() and not path.is_file():
        raise wrong(name, f"{path}, which is a pipe or a device", "a file", "write its content to a file first")


def read_aligned(source: Path, target: Path, report: Report = report_nothing) -> Iterator[SentencePair]:
    """Yield pairs from two files whose lines correspond; a side may be empty."""
    sources, targets = (read_lines(path, STREAM, report) for path in (source, target))
    for number, (one, other) in enumerate(zip_longest(sources, targets)):
        if one is None or other is None:
            more = number + 1 + sum(1 for _ in (targets if one is None else sources))
            counts = (number, more) if one is None else (more, number)
            got = f"{counts[0]} lines in {source.name} and {counts[1]} in {target.name}"
            fix = "align them: line i of one must translate line i of the other"
            raise wrong("data", got, "equally many", fix)
        yield SentencePair(clean(one), clean(other))


def read_table(
    path: Path, columns: tuple[int, int] = (0, 1), report: Report = report_nothing
) -> Iterator[SentencePair]:
    """Yield pairs from two columns of a file with tabs, of which a side may be empty; further columns do not matter."""
    first, second = columns
    for number, line in enumerate(read_lines(path, STREAM, report), start=1):
        row = line.split("\t")
        if any(row) and len(row) <= max(columns):
            got = f"{len(row)} columns in line {number}"
            fix = "separate sentence and translation by a tab"
            raise wrong(path.name, got, f"at least {max(columns) + 1}", fix)
        yield SentencePair(clean(row[first]), clean(row[second])) if any(row) else SentencePair("", "")


class CompletePairs:
    """The pairs with text on both sides; how many others there were is known at the end."""

    def __init__(self, pairs: Iterable[SentencePair], name: str) -> None:
        self.pairs, self.name, self.lines, self.kept = pairs, name, 0, 0

    def __iter__(self) -> Iterator[SentencePair]:
        for self.lines, pair in enumerate(self.pairs, 1):  # noqa: B020
            if pair.source and pair.target:
                self.kept += 1
                yield pair
        if not self.kept:
            fix = "check that the files correspond"
            raise wrong(self.name, "no pair with text on both sides", "one pair a line", fix)

    @property
    def notes(self) -> list[str]:
        """A note on the pairs that were left out."""
        dropped = self.lines - self.kept
        note = f"{self.name}: left out {dropped} of {self.lines} lines, empty on one side or both"
        return [note] if dropped else []
