"""Lines from standard input as they come: many at once from a file, one at a time from somebody who types."""

import os
import select
import sys
from collections.abc import Iterator, Sequence

from regard.bounds import most
from regard.datasets.cleaning import decoded
from regard.errors import InputError, wrong

LINE = most("text", "line")

CHUNK = 2**16


def standard_input() -> int:
    """The handle of standard input; a sentence where there is none."""
    fix = "give it text: regard … < text.txt"
    try:
        handle = sys.stdin.fileno()
        os.fstat(handle)
    except (AttributeError, OSError, ValueError):
        raise wrong("input", "standard input, which is closed", "text on standard input", fix) from None
    return handle


def lines_of(handle: int, most: int) -> Iterator[list[str]]:
    """The lines of a file handle in lists of at most `most`, given out as soon as no more are waiting."""
    number = 0
    for whole in raw_lines(handle, most):
        for start in range(0, len(whole), most):
            yield from readable(whole[start : start + most], number + start)
        number += len(whole)


def raw_lines(handle: int, most: int) -> Iterator[list[bytes]]:
    """The same in bytes, as many as came. What is begun is at most a line that is allowed, and one chunk."""
    rest, ended = bytearray(), False
    while not ended:
        whole: list[bytes] = []
        while not ended and len(whole) < most and (not whole or waiting(handle)):
            content = some_of(handle)
            ended = not content
            *lines, begun = content.split(b"\n")
            if lines:
                whole += [bytes(rest) + lines[0], *lines[1:]]
                rest.clear()
            rest += begun
            if len(rest) > LINE:  # the next look at it refuses it, and nothing before it is lost
                break
        if ended and rest:
            whole, rest = [*whole, bytes(rest)], bytearray()
        yield whole
        if len(rest) > LINE:
            yield [bytes(rest)]


def some_of(handle: int) -> bytes:
    """What is there now; nothing at the end."""
    try:
        return os.read(handle, CHUNK)
    except OSError as error:
        fix = "give it a file or a pipe: regard … < text.txt"
        raise wrong("input", f"'{error.strerror}'", "text on standard input", fix) from None


def waiting(handle: int) -> bool:
    """Whether there is something to read now; always so in a file, even at its end."""
    return bool(select.select([handle], [], [], 0)[0])


def readable(lines: Sequence[bytes], before: int) -> Iterator[list[str]]:
    """Lines of UTF-8, without what ends a line on other systems. Those before a bad one are still given out."""
    texts: list[str] = []
    for number, line in enumerate(lines, before + 1):
        try:
            texts.append(text_of(line, number))
        except InputError:
            yield texts
            raise
    yield texts


def text_of(line: bytes, number: int) -> str:
    """A line as text, or a sentence with its number."""
    if len(line) > LINE:
        got = f"more than {LINE:,} bytes in line {number}"
        raise wrong("input", got, "a sentence a line", "put each sentence on a line of its own")
    return decoded(line, "input", number).removesuffix("\r")
