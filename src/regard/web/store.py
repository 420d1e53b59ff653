"""Keep recordings for the page under names that nobody can guess, and drop the oldest if there are too many.

Those that were sent stay on the disk, from where they come back: their links hold as long as the server runs.
"""

import secrets
import shutil
import tempfile
import threading
import weakref
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

    def add(self, title: str, recording: Recording, name: str | None = None) -> str:
        """Keep what the page shows of a recording, and return the name to ask for: a new one, or the one it had."""
        recording.metadata, recording.notes = {}, recording.notes[:NOTES]
        size = count_bytes(recording)
        if size > self.most:
            got, fix = f"{size:,} bytes", "observe fewer sites, or with a lower limit"
            raise refuse(413, "recording", got, f"at most {self.most:,}", fix)
        name = name or secrets.token_urlsafe(12)
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


class Uploads:
    """Recordings that were sent, as files of at most `most` bytes together. Used by several threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.folder: Path | None = None
        self.sizes: OrderedDict[str, int] = OrderedDict()
        self.lock = threading.Lock()

    def write(self, content: bytes) -> Path:
        """Write what was sent, and return the path, which has no name yet."""
        with self.lock:
            self.folder = self.folder or self.create_folder()
            path = self.folder / f"{secrets.token_urlsafe(12)}.part"
        try:
            path.write_bytes(content)
        except OSError as error:
            path.unlink(missing_ok=True)
            got, fix = f"no room for the upload ('{error.strerror}')", "free some space where it runs"
            raise refuse(507, "server", got, f"{len(content):,} bytes of it", fix) from None
        return path

    def create_folder(self) -> Path:
        """Return a new folder, which goes with this object at the latest."""
        folder = Path(tempfile.mkdtemp(prefix="regard-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def keep(self, path: Path, name: str) -> None:
        """Keep a file under the name of its recording; the oldest go if there are too many."""
        with self.lock:
            self.sizes[name] = path.stat().st_size
            path.rename(path.with_name(name))
            while sum(self.sizes.values()) > self.most:
                path.with_name(self.sizes.popitem(last=False)[0]).unlink(missing_ok=True)

    def find(self, name: str) -> Path | None:
        """Return the file of a recording; None if it was not sent, or is gone."""
        with self.lock:
            return self.folder / name if self.folder and name in self.sizes else None

    def close(self) -> None:
        """Remove all files."""
        with self.lock:
            self.sizes.clear()
            if self.folder:
                shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


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
