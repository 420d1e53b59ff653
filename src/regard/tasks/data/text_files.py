"""Lines of text from files, plain or gzip, and what can be wrong with them."""

import codecs
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

from regard.datasets import DATASETS_BY_NAME, REGARD_DATA, find_data
from regard.datasets.bounds import get_bound
from regard.datasets.text import clean, decode_text
from regard.errors import wrong
from regard.tasks.data.pairs import SentencePair

TEXT = get_bound("text", "bytes")

GZIP = b"\x1f\x8b"


def locate_data(path: Path) -> Path:
    """Return the file or folder itself, or the one of that name in the data folders; `.gz` is tried."""
    found = find_data(path)
    if found is not None:
        return found
    fix = f"check the path, or set {REGARD_DATA} to the folder that holds it"
    if path.parts and path.parts[0] in DATASETS_BY_NAME:
        fix = f"run regard data get {path.parts[0]}, or give a folder of your own"
    raise wrong("data", f"no {path}", "a file or folder that exists", fix)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 file, without blanks around them; runs of blanks inside become one. Tabs stay."""
    content = read_decompressed(path)
    if not content.removeprefix(codecs.BOM_UTF8).strip():
        raise wrong(path.name, "an empty file", "one sentence a line", "check the path and the file's origin")
    # Only "\n" ends a line: text may hold U+2028 and other characters that splitlines() would split at.
    lines = decode_text(content, path.name).removesuffix("\n").split("\n")
    return [" ".join(word for word in line.rstrip("\r").split(" ") if word) for line in lines]


def read_decompressed(path: Path) -> bytes:
    """Return the content of a file of limited size, gzipped or not, as its first bytes show."""
    check_plain_file(path)
    try:
        with path.open("rb") as file:
            zipped = file.read(len(GZIP)) == GZIP
            file.seek(0)
            content = (gzip.GzipFile(fileobj=file) if zipped else file).read(TEXT + 1)
    except FileNotFoundError:
        raise wrong("data", f"no file {path}", "a file that exists", "check the path") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise wrong(path.name, f"a damaged gzip file ({error})", "a whole one", "fetch it again") from None
    except OSError as error:
        raise wrong(path.name, f"'{error.strerror}'", "a file that can be read", "check the path") from None
    if len(content) > TEXT:
        raise wrong(path.name, f"more than {TEXT:,} bytes of text", "a smaller file", "cut it into several")
    return content


def check_plain_file(path: Path, name: str = "data") -> None:
    """Raise if a path is not a plain file: reading a pipe would wait for ever, a device never ends."""
    if path.is_dir():
        raise wrong(name, f"{path}, which is a folder", "a file", "name a file in it")
    if path.exists() and not path.is_file():
        raise wrong(name, f"{path}, which is a pipe or a device", "a file", "write its content to a file first")


def read_aligned(source: Path, target: Path) -> tuple[list[SentencePair], list[str]]:
    """Read pairs from two files whose lines correspond."""
    source, target = locate_data(source), locate_data(target)
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        got = f"{len(sources)} lines in {source.name} and {len(targets)} in {target.name}"
        fix = "align them: line i of one must translate line i of the other"
        raise wrong("data", got, "equally many", fix)
    pairs = [SentencePair(clean(one), clean(other)) for one, other in zip(sources, targets, strict=True)]
    return drop_incomplete_pairs(pairs, source.name)


def read_table(path: Path, columns: tuple[int, int] = (0, 1)) -> tuple[list[SentencePair], list[str]]:
    """Read pairs from two columns of a file with tabs; further columns do not matter."""
    path = locate_data(path)
    rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if any(row) and len(row) <= max(columns):
            got = f"{len(row)} columns in line {number}"
            fix = "separate sentence and translation by a tab"
            raise wrong(path.name, got, f"at least {max(columns) + 1}", fix)
    first, second = columns
    pairs = [SentencePair(clean(row[first]), clean(row[second])) if any(row) else SentencePair("", "") for row in rows]
    return drop_incomplete_pairs(pairs, path.name)


def drop_incomplete_pairs(pairs: Sequence[SentencePair], name: str) -> tuple[list[SentencePair], list[str]]:
    """Return the pairs with text on both sides, and a note on the others."""
    kept = [pair for pair in pairs if pair.source and pair.target]
    if not kept:
        raise wrong(name, "no pair with text on both sides", "one pair a line", "check that the files correspond")
    dropped = len(pairs) - len(kept)
    note = f"{name}: left out {dropped} of {len(pairs)} lines, empty on one side or both"
    return kept, [note] if dropped else []
