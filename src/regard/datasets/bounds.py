"""The largest inputs that are accepted from files and clients, in one table. They are checked before any work is done.

Code that reads an input gets its bounds from here by name. SECURITY.md lists them (a test compares the two).
"""

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import wrong


class Bound(NamedTuple):
    """The largest number of something, and its unit."""

    most: int
    unit: str


BOUNDS: Mapping[str, Mapping[str, Bound]] = {
    "image": {
        "bytes": Bound(2**28, "bytes of a file"),
        "pixels": Bound(100_000_000, "pixels"),
        "side": Bound(2**15, "pixels of a side, and of the side of a tile in a TIFF"),
        "served pixels": Bound(2**25, "pixels of one that a client sends"),
    },
    "sound": {
        "bytes": Bound(2**29, "bytes of a file"),
        "rate": Bound(192_000, "samples a second"),
        "channels": Bound(32, "channels"),
        "samples": Bound(2**26, "samples of all channels together"),
        "seconds": Bound(600, "seconds"),
        "block": Bound(2**20, "samples that are decoded or converted to another rate at once"),
        "served seconds": Bound(60, "seconds of one that a client sends"),
    },
    "idx file": {
        "bytes": Bound(2**30, "bytes of a file of pictures or classes, unpacked"),
    },
    "array": {
        "bytes": Bound(2**30, "bytes of a .npy file of numbers"),
        "vectors": Bound(2**33, "bytes of a file of word vectors, and of all arrays in it, unpacked"),
    },
    "text": {
        "bytes": Bound(2**30, "bytes of a text file, unpacked"),
        "stream": Bound(2**36, "bytes of a file of parallel text, unpacked, which is read as a stream"),
        "streamed line": Bound(2**24, "bytes of a line of a text file"),
        "line": Bound(2**20, "bytes of a line of standard input"),
    },
    "download": {
        "bytes": Bound(2**28, "bytes of a download whose size is not known"),
        "piece": Bound(2**16, "bytes that are read at once"),
        "seconds": Bound(60, "seconds for the head of an answer, and for each piece of that many bytes"),
        "redirects": Bound(5, "addresses that a download is sent on to"),
        "digits": Bound(18, "digits of a number in an answer's head"),
    },
    "archive": {
        "listing": Bound(2**24, "bytes of the list of members"),
        "members": Bound(100_000, "members"),
        "member": Bound(2**26, "bytes of an image or sound in it"),
        "unpacked": Bound(2**32, "bytes, unpacked"),
        "name": Bound(255, "bytes of the name of a member"),
    },
    "recording": {
        "bytes": Bound(2**32, "bytes of a file"),
        "text share": Bound(4, "the text has at most one in so many of the bytes that are allowed"),
        "value share": Bound(64, "the JSON has at most one value in so many of the bytes that are allowed"),
        "sites": Bound(2**16, "sites"),
        "tensors": Bound(2**18, "tensors"),
        "heads": Bound(2**12, "heads of a site"),
        "axis": Bound(2**24, "positions of an axis"),
        "name": Bound(2**12, "characters of the name of a site"),
        "served bytes": Bound(2**26, "bytes that a client sends"),
        "served notes": Bound(100, "notes that are kept"),
    },
    "store": {
        "bytes": Bound(2**28, "bytes of recordings that are kept: numbers, labels, names, notes and sites"),
        "cells": Bound(2**20, "weights that are sent as one table, and of all small tables that are sent at once"),
        "sent bytes": Bound(2**29, "bytes of recordings from clients that are kept on the disk until the server ends"),
    },
    "run folder": {
        "entries": Bound(4096, "files and folders in it"),
        "config bytes": Bound(2**16, "bytes of config.toml and of versions.json"),
        "config dots": Bound(32, "dots of a line of config.toml: reading a dotted key takes the square of its depth"),
        "file bytes": Bound(2**26, "bytes of a vocabulary or another file"),
        "weights bytes": Bound(2**32, "bytes of weights.safetensors"),
        "metrics bytes": Bound(2**28, "bytes of metrics.jsonl"),
        "metrics line": Bound(2**16, "bytes of a line of metrics.jsonl"),
        "metrics part": Bound(2**20, "bytes of metrics.jsonl that are read at once"),
        "number": Bound(2**20, "the largest number of a configuration, but for these"),
        "seed": Bound(2**63 - 1, "seed"),
        "layers": Bound(256, "layers"),
        "hops": Bound(256, "hops"),
        "pixels": Bound(2048, "pixels of a side that a model is given"),
        "rate": Bound(192_000, "samples a second that a model is given"),
        "window": Bound(1000, "milliseconds of a window"),
        "hop": Bound(1000, "milliseconds of a hop"),
        "filters": Bound(512, "filters of a spectrogram"),
        "bank": Bound(2**23, "numbers of a bank of filters"),
        "spectrum": Bound(2**24, "numbers of the spectrum of a sound that a client sends"),
    },
    "request": {
        "header bytes": Bound(2**14, "bytes of the request line and headers"),
        "body bytes": Bound(2**16, "bytes of a question"),
        "file bytes": Bound(2**24, "bytes of an image, a sound or a passage"),
        "characters": Bound(2000, "characters of a text"),
        "passage": Bound(2**14, "characters of a passage"),
        "name": Bound(200, "characters of a name"),
        "tokens": Bound(512, "tokens of a text, and of its translation"),
        "beam": Bound(16, "hypotheses at once"),
        "length": Bound(5, "exponent of the length penalty"),
        "temperature": Bound(5, "temperature"),
        "seed": Bound(2**31 - 1, "seed"),
        "patience": Bound(10, "seconds for a body to arrive; six times that for a file"),
        "seconds": Bound(30, "seconds for an answer"),
    },
    "server": {
        "workers": Bound(2, "requests that are computed at the same time, and uploads that arrive"),
        "waiting": Bound(64, "requests that wait for a worker"),
        "followers": Bound(64, "pages that follow the curves of a run"),
        "connections": Bound(512, "open connections; for a further one the oldest silent one is closed"),
        "silence": Bound(10, "seconds until a connection has sent a whole request line and headers, each time"),
        "unread": Bound(30, "seconds that a client may leave an answer unread"),
    },
}


def get_bound(name: str, quantity: str) -> int:
    """Return a bound of the table.

    >>> get_bound("sound", "rate")
    192000
    """
    return BOUNDS[name][quantity].most


def format_markdown() -> str:
    """Return the table as it stands in SECURITY.md."""
    lines = ["| input | bound | at most | of |", "|---|---|---:|---|"]
    for name, bounds in BOUNDS.items():
        lines += [f"| {name} | {what} | {bound.most:,} | {bound.unit} |" for what, bound in bounds.items()]
    return "\n".join(lines)


def format_number(value: int | float) -> str:
    """Return a number in few characters; the digits of a huge integer are not even computed.

    >>> format_number(1.5), format_number(10**400)
    ('1.5', 'an integer of many digits')
    """
    return "an integer of many digits" if isinstance(value, int) and value.bit_length() > 128 else str(value)[:40]


def parse_json(text: str | bytes) -> Any:
    """Return what JSON text says. What is nested too deep for Python is damaged as any other: a `ValueError`.

    >>> parse_json("[1, 2]")
    [1, 2]
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("nested too deep", "", 0) from None


def check_file(name: str, path: Path, largest: int, shown: str | None = None) -> None:
    """Raise unless `path` is a plain file of at most `largest` bytes: opening a pipe or device may never return."""
    shown = shown or str(path)
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise wrong(name, f"{shown}, which is not a plain file", "a file", "copy its content into one")
    if found.st_size > largest:
        raise wrong(name, f"{shown} of {found.st_size:,} bytes", f"at most {largest:,}", "use a smaller one")
