"""Keep recordings for the page under names that nobody can guess, and drop the oldest if there are too many."""

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

NOTES = get_bound("recording", "served notes")  # of a recording
LETTER = 4  # bytes of a character, at most
LABEL = 64  # bytes of a label beside its characters
SITE, TENSOR = 1024, 512  # bytes of a site and of a tensor beside their numbers


class StoredRecording(NamedTuple):
    """A recording, the title it is shown by, and its bytes in memory."""

    title: str
    recording: Recording
    bytes: int


def count_bytes(recording: Recording) -> int:
    """Return the bytes of a recording in memory: numbers, labels, notes and names, each with its overhead."""
    axes = [axis for both in recording.labels.values() for axis in (both.queries, both.keys)]
    text = sum(LETTER * len(text) + LABEL for text in chain(*axes, recording.notes, recording))
    sites = sum(SITE + TENSOR * len(attention.tensors()) for attention in recording.values())
    return SITE + recording.bytes + text + sites


class Store:
    """Recordings of at most `most` bytes together. Used by several threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.recordings: OrderedDict[str, StoredRecording] = OrderedDict()
        self.lock = threading.Lock()

    def add(self, title: str, recording: Recording) -> str:
        """Keep what the page shows of a recording, and return the name to ask for."""
        recording.metadata, recording.notes = {}, recording.notes[:NOTES]
        size = count_bytes(recording)
        if size > self.most:
            got, fix = f"{size:,} bytes", "observe fewer sites, or with a lower limit"
            raise refuse(413, "recording", got, f"at most {self.most:,}", fix)
        name = secrets.token_urlsafe(12)
        with self.lock:
            self.recordings[name] = StoredRecording(title, recording, size)
            while self.bytes > self.most:
                self.recordings.popitem(last=False)
        return name

    @property
    def bytes(self) -> int:
        """The bytes of all recordings."""
        return sum(one.bytes for one in self.recordings.values())

    def get(self, name: str) -> StoredRecording:
        """Return a recording, which is then the last to be dropped."""
        with self.lock:
            if name not in self.recordings:
                fix = "ask for it anew: translate again, or open the file again"
                raise refuse(404, "recording", "one that is not here", "one that is still kept", fix)
            self.recordings.move_to_end(name)
            return self.recordings[name]


class Files:
    """Recordings in files that were named when the server was started. No other file is ever opened."""

    def __init__(self, paths: dict[str, Path], limit: int) -> None:
        self.paths, self.limit = paths, limit
        self.stored_names: dict[str, str] = {}  # by title, of those that were asked for

    def open(self, title: str, store: Store, check_interrupt: Callable[[], object]) -> str:
        """Return the name in the store of a file, which is read again if it was dropped."""
        path = self.paths.get(title)
        if path is None:
            expected = f"one of {', '.join(self.paths) or '(none)'}"
            raise refuse(404, "recording", repr(title[:100]), expected, "choose one of them")
        if self.stored_names.get(title) not in store.recordings:
            recording = read_recording(path, self.limit, name=title, check_interrupt=check_interrupt)
            self.stored_names[title] = store.add(title, recording)
        return self.stored_names[title]
