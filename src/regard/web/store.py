"""Recordings that the page may ask for, under names that nobody can guess; the oldest go when there is no room."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from regard.datasets.bounds import get_bound
from regard.inspect.recording import Recording
from regard.inspect.recording.file import read_recording
from regard.web.responses import refuse

NOTES = get_bound("recording", "served notes")  # of a recording that are kept
LETTER = 4  # bytes of a character, at most
LABEL = 64  # bytes of a label beside its characters
SITE, TENSOR = 1024, 512  # bytes of a site and of a tensor beside their numbers


class StoredRecording(NamedTuple):
    """A recording, the name it is shown by, and what it takes."""

    title: str
    recording: Recording
    bytes: int


def count_bytes(recording: Recording) -> int:
    """Its numbers and its text: labels, notes and the names of its sites, each of which has its price even if empty."""
    axes = [axis for both in recording.labels.values() for axis in (both.queries, both.keys)]
    text = sum(LETTER * len(text) + LABEL for text in chain(*axes, recording.notes, recording))
    sites = sum(SITE + TENSOR * len(seen.tensors()) for seen in recording.values())
    return SITE + recording.bytes + text + sites


class Store:
    """Some recordings of at most so many bytes together. Used by several threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: OrderedDict[str, StoredRecording] = OrderedDict()
        self.lock = threading.Lock()

    def add(self, title: str, recording: Recording) -> str:
        """Keeps one more, as far as the page shows it; returns what to ask for."""
        recording.metadata, recording.notes = {}, recording.notes[:NOTES]
        size = count_bytes(recording)
        if size > self.most:
            got, fix = f"{size:,} bytes", "observe fewer sites, or with a lower limit"
            raise refuse(413, "recording", got, f"at most {self.most:,}", fix)
        name = secrets.token_urlsafe(12)
        with self.lock:
            self.kept[name] = StoredRecording(title, recording, size)
            while self.bytes > self.most:
                self.kept.popitem(last=False)
        return name

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.kept.values())

    def get(self, name: str) -> StoredRecording:
        with self.lock:
            found = self.kept.get(name)
            if found is None:
                fix = "ask for it anew: translate again, or open the file again"
                raise refuse(404, "recording", "one that is not here", "one that is still kept", fix)
            self.kept.move_to_end(name)
            return found


class Files:
    """Recordings in files that were named when the server was started. No other file is ever opened."""

    def __init__(self, paths: dict[str, Path], limit: int) -> None:
        self.paths, self.limit = paths, limit
        self.opened: dict[str, str] = {}  # the name in the store of those that were asked for

    def open(self, title: str, store: Store, between: Callable[[], object]) -> str:
        """The name in the store, read again where it had to go; `between` is called between the sites of the file."""
        path = self.paths.get(title)
        if path is None:
            expected = f"one of {', '.join(self.paths) or '(none)'}"
            raise refuse(404, "recording", repr(title[:100]), expected, "choose one of them")
        name = self.opened.get(title)
        if name is None or name not in store.kept:
            name = self.opened[title] = store.add(title, read_recording(path, self.limit, name=title, between=between))
        return name
