"""Lines of text from files, plain or gzip, and what can be wrong with them."""

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

from regard.datasets import KNOWN, REGARD_DATA, find
from regard.errors import InputError, wrong
from regard.tasks.data.pairs import Pair

GZIP = b"\x1f\x8b"


def located(path: Path) -> Path:
    """The file or folder itself, or the one of that name where data is looked for; `.gz` is tried."""
    found = find(path)
    if found is not None:
        return found
    fix = f"check the path, or set {REGARD_DATA} to the folder that holds it"
    if path.parts and path.parts[0] in KNOWN:
        fix = f"run regard data get {path.parts[0]}, or give a folder of your own"
    raise wrong("data", f"no {path}", "a file or folder that exists", fix)


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, without blanks around them; runs of blanks inside become one. Tabs stay."""
    content = unzipped(path).removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise wrong(path.name, "an empty file", "one sentence a line", "check the path and the file's origin")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(path, content, error.start) from None
    # Only "\n" ends a line: text may hold U+2028 and other characters that splitlines() would split at.
    lines = text.removesuffix("\n").split("\n")
    return [" ".join(word for word in line.rstrip("\r").split(" ") if word) for line in lines]


def unzipped(path: Path) -> bytes:
    """The content of a file; what it is, its first bytes tell, not its name."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(GZIP) else content
    except FileNotFoundError:
        raise wrong("data", f"no file {path}", "a file that exists", "check the path") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise wrong(path.name, f"a damaged gzip file ({error})", "a whole one", "fetch it again") from None
    except OSError as error:
        raise wrong(path.name, f"'{error.strerror}'", "a file that can be read", "check the path") from None


def not_utf8(path: Path, content: bytes, place: int) -> InputError:
    line = content.count(b"\n", 0, place) + 1
    fix = "convert it, for example with iconv -f latin1 -t utf-8"
    return wrong(path.name, f"byte 0x{content[place]:02x} in line {line}", "UTF-8 text", fix)


def read_aligned(source: Path, target: Path) -> tuple[list[Pair], list[str]]:
    """Pairs from two files whose lines correspond."""
    source, target = located(source), located(target)
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        got = f"{len(sources)} lines in {source.name} and {len(targets)} in {target.name}"
        fix = "align them: line i of one must translate line i of the other"
        raise wrong("data", got, "equally many", fix)
    pairs = [Pair(one.strip(), other.strip()) for one, other in zip(sources, targets, strict=True)]
    return complete(pairs, source.name)


def read_table(path: Path, columns: tuple[int, int] = (0, 1)) -> tuple[list[Pair], list[str]]:
    """Pairs from two of the columns of a file with tabs; further columns do not matter."""
    path = located(path)
    rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if any(row) and len(row) <= max(columns):
            got = f"{len(row)} columns in line {number}"
            fix = "separate sentence and translation by a tab"
            raise wrong(path.name, got, f"at least {max(columns) + 1}", fix)
    first, second = columns
    pairs = [Pair(row[first].strip(), row[second].strip()) if any(row) else Pair("", "") for row in rows]
    return complete(pairs, path.name)


def complete(pairs: Sequence[Pair], name: str) -> tuple[list[Pair], list[str]]:
    """The pairs with text on both sides, and a note on the others."""
    kept = [pair for pair in pairs if pair.source and pair.target]
    if not kept:
        raise wrong(name, "no pair with text on both sides", "one pair a line", "check that the files correspond")
    dropped = len(pairs) - len(kept)
    note = f"{name}: left out {dropped} of {len(pairs)} lines, empty on one side or both"
    return kept, [note] if dropped else []
