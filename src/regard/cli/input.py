"""Read lines from standard input as they arrive: many at once from a file, one at a time from a keyboard."""

import os
import select
import sys
from collections.abc import Iterator, Sequence

from regard.datasets.bounds import get_bound
from regard.datasets.text import decode_text
from regard.errors import InputError, wrong

LINE = get_bound("text", "line")
CHUNK = 2**16


def get_stdin_handle() -> int:
    """Return the handle of standard input; raise if it is closed."""
    fix = "give it text: regard … < text.txt"
    try:
        handle = sys.stdin.fileno()
        os.fstat(handle)
    except (AttributeError, OSError, ValueError):
        raise wrong("input", "standard input, which is closed", "text on standard input", fix) from None
    return handle


def read_lines(handle: int, most: int) -> Iterator[list[str]]:
    """Yield the lines of a file handle in lists of at most `most`, as soon as no more are waiting."""
    number = 0
    for whole in read_raw_lines(handle, most):
        for start in range(0, len(whole), most):
            yield from decode_lines(whole[start : start + most], number + start)
        number += len(whole)


def read_raw_lines(handle: int, most: int) -> Iterator[list[bytes]]:
    """Yield lists of lines in bytes. An unfinished line is kept up to the bound and one chunk more."""
    rest, ended = bytearray(), False
    while not ended:
        whole: list[bytes] = []
        while not ended and len(whole) < most and (not whole or has_input(handle)):
            content = read_chunk(handle)
            ended = not content
            *lines, unfinished = content.split(b"\n")
            if lines:
                whole += [bytes(rest) + lines[0], *lines[1:]]
                rest.clear()
            rest += unfinished
            if len(rest) > LINE:  # the lines before it are yielded first; then `decode_line` raises for this one
                break
        if ended and rest:
            whole, rest = [*whole, bytes(rest)], bytearray()
        yield whole
        if len(rest) > LINE:
            yield [bytes(rest)]


def read_chunk(handle: int) -> bytes:
    """Return the bytes that are waiting; empty at the end."""
    try:
        return os.read(handle, CHUNK)
    except OSError as error:
        fix = "give it a file or a pipe: regard … < text.txt"
        raise wrong("input", f"'{error.strerror}'", "text on standard input", fix) from None


def has_input(handle: int) -> bool:
    """Return whether there is something to read now; always so in a file, even at its end."""
    return bool(select.select([handle], [], [], 0)[0])


def decode_lines(lines: Sequence[bytes], before: int) -> Iterator[list[str]]:
    """Yield lines as text, also those before a line that raises."""
    texts: list[str] = []
    for number, line in enumerate(lines, before + 1):
        try:
            texts.append(decode_line(line, number))
        except InputError:
            yield texts
            raise
    yield texts


def decode_line(line: bytes, number: int) -> str:
    """Return a line as text, without the carriage return of Windows; errors name its number."""
    if len(line) > LINE:
        got = f"more than {LINE:,} bytes in line {number}"
        raise wrong("input", got, "a sentence a line", "put each sentence on a line of its own")
    return decode_text(line, "input", number).removesuffix("\r")
