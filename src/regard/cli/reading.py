"""Lines from standard input as they come: many at once from a file, one at a time from somebody who types."""

import os
import select
from collections.abc import Iterator, Sequence

from regard.errors import wrong

CHUNK = 2**16


def lines_of(handle: int, most: int) -> Iterator[list[str]]:
    """The lines of a file handle in lists of at most `most`, given out as soon as no more are waiting."""
    rest, number, ended = b"", 0, False
    while not ended:
        content = os.read(handle, CHUNK)
        ended, rest = not content, rest + content
        while not ended and rest.count(b"\n") < most and waiting(handle):
            content = os.read(handle, CHUNK)
            ended, rest = not content, rest + content
        *whole, rest = rest.split(b"\n")
        if ended and rest:
            whole, rest = [*whole, rest], b""
        for start in range(0, len(whole), most):
            yield from readable(whole[start : start + most], number + start)
        number += len(whole)


def waiting(handle: int) -> bool:
    """Whether there is something to read now; always so in a file, even at its end."""
    return bool(select.select([handle], [], [], 0)[0])


def readable(lines: Sequence[bytes], before: int) -> Iterator[list[str]]:
    """Lines of UTF-8, without what ends a line on other systems. Those before a bad one are still given out."""
    texts: list[str] = []
    for number, line in enumerate(lines, before + 1):
        try:
            texts.append(line.decode("utf-8").removesuffix("\r"))
        except UnicodeDecodeError as error:
            yield texts
            fix = "convert it, for example with iconv -f latin1 -t utf-8"
            raise wrong("input", f"byte 0x{line[error.start]:02x} in line {number}", "UTF-8 text", fix) from None
    yield texts
