"""Read files that may be anything: pipes and devices are not opened, and no more than a bound is read."""

import errno
import os
import stat
from pathlib import Path
from typing import IO, Any

from regard.datasets.bounds import get_bound, parse_json

FILE = get_bound("run folder", "file bytes")


def open_regular(path: Path, flags: int, buffering: int = -1) -> IO[bytes]:
    """Open a file. A pipe or a device is an OSError, because reading or opening it might never end."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(handle, "r+b" if flags & os.O_RDWR else "rb", buffering)


def read_bytes(path: Path, most: int = FILE) -> bytes:
    """Return the content of a file; raise OSError or ValueError if it is longer than `most` bytes or not a file."""
    with open_regular(path, os.O_RDONLY) as file:
        # As much as there is, and a byte more: Python takes memory for all that it is asked for.
        content = file.read(min(most, os.fstat(file.fileno()).st_size) + 1)
    if len(content) > most:
        raise ValueError(f"longer than {most:,} bytes")
    return content


def read_text(path: Path, most: int = FILE) -> str:
    """Return the text of a small file; raise OSError or ValueError if it has none."""
    return read_bytes(path, most).decode("utf-8")


def read_json(path: Path, most: int = FILE) -> dict[str, Any]:
    """Return the JSON object of a small file; raise OSError or ValueError if it has none."""
    content = parse_json(read_text(path, most))
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content
