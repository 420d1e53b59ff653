"""Compiled libraries on disk: found by what they were made from, and never half of one.

An entry is a folder with the library and its SHA-256. It appears by one rename of a finished folder, so others see
all of it or nothing, whoever else is compiling; and what a disk or a person damaged later fails the sum. A process
locks the sum of the entry that it loaded: whoever publishes another removes those of other sources that nobody uses.
"""

import contextlib
import hashlib
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

if sys.platform != "win32":
    import fcntl

VARIABLE = "REGARD_CACHE"
LIBRARY = "library.so"
SUM = "library.sha256"
ENTRY = re.compile(r"native-(?:(?P<sources>[0-9a-f]{12})-)?[0-9a-f]{32}")
KEPT = 8  # entries of the same sources: compilers, processors and versions of torch differ
DAY = 86_400  # seconds; longer than any compilation, and than an environment in use goes without loading its library
_in_use: list[int] = []  # descriptors whose locks say, as long as this process runs, that it uses an entry


def find_folder() -> Path:
    """Return the folder of libraries: `REGARD_CACHE`, else the platform's own folder for caches."""
    with contextlib.suppress(RuntimeError):  # nobody knows a home
        named = os.environ.get(VARIABLE)
        if named:
            return Path(named).expanduser()
        usual = Path.home() / "Library" / "Caches" if sys.platform == "darwin" else _find_xdg_cache()
        if usual.is_absolute():
            return usual / "regard"
    return Path(tempfile.gettempdir()) / f"regard-{_get_user_id()}"


def _find_xdg_cache() -> Path:
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"


def _get_user_id() -> int:
    """Return the user id of this process; 0 if the platform has none."""
    return os.getuid() if hasattr(os, "getuid") else 0


def is_safe(*paths: Path) -> bool:
    """Return whether only this user and root can have written it: what is there will be executed."""
    if not hasattr(os, "getuid"):
        return True
    found = [path.stat() for path in paths]
    return all(one.st_uid in (0, os.getuid()) and not one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for one in found)


def compute_key(files: Iterable[Path], *facts: str) -> str:
    """Return one name for everything that the library depends on."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\0".encode())
    for fact in facts:
        digest.update(f"{fact}\0".encode())
    return digest.hexdigest()[:32]


def describe_processor() -> str:
    """Return the processor and its features: code for this one may not run on another."""
    names = ("model name", "flags", "Features", "CPU implementer", "CPU part", "isa")
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        found = sorted({line for line in lines if line.split(":")[0].strip() in names})
        if found:
            return "\n".join(found)
    return " ".join((platform.system(), platform.machine(), platform.processor(), platform.node()))


def name_entry(files: Iterable[Path], *facts: str) -> str:
    """Return the name of an entry: its sources, which are those of one version of regard, and everything."""
    files = list(files)
    return f"native-{compute_key(files)[:12]}-{compute_key(files, *facts)}"


def find_entry(entry: Path) -> Path | None:
    """Return the library of an entry, if it is whole and nobody else can have put it there."""
    with contextlib.suppress(OSError):
        library = entry / LIBRARY
        if not is_safe(entry.parent, entry, library, entry / SUM):
            return None
        if not (library.is_file() and (entry / SUM).is_file()):  # a pipe would be waited for
            return None
        if (entry / SUM).read_bytes().strip() == _compute_sha256(library).encode():
            return library
    return None


def make_build_folder(parent: Path) -> Path:
    """Make a private folder to compile in: beside the entries, so that a rename suffices, or elsewhere."""
    with contextlib.suppress(OSError):
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if is_safe(parent):
            _remove_stale(parent)
            return Path(tempfile.mkdtemp(prefix="building-", dir=parent))
        message = f"regard keeps no compiled kernels in {parent}: others may write there; fix: chmod go-w, or your own"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return Path(tempfile.mkdtemp(prefix="regard-"))


def publish(library: Path, entry: Path) -> Path:
    """Move a finished `library` from its build folder to the entry, and return the library to load.

    Whatever another process does meanwhile, the answer is a whole library: the entry's, or our own unpublished one.
    """
    own = library.parent
    (own / SUM).write_text(_compute_sha256(library))
    for file in (library, own / SUM):
        file.chmod(0o644)  # a mask of 002 would let the group write
    with contextlib.suppress(OSError):
        if not is_safe(entry.parent):
            return library
        if entry.exists() and find_entry(entry) is None:
            damaged = Path(tempfile.mkdtemp(prefix="damaged-", dir=entry.parent))
            os.rename(entry, damaged / entry.name)
            shutil.rmtree(damaged, ignore_errors=True)
        os.rename(own, entry)
        return entry / LIBRARY
    return find_entry(entry) or library


def mark_used(entry: Path) -> None:
    """Note when the entry was used, and lock it against removal until this process ends."""
    with contextlib.suppress(OSError):  # a cache that cannot be written to is not cleaned either
        os.utime(entry / SUM)
        if sys.platform != "win32":
            _in_use.append(os.open(entry / SUM, os.O_RDONLY))
            fcntl.flock(_in_use[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)


def remove_old_entries(new: Path) -> None:
    """Remove entries of other sources, and all but the last few of the same; never one that a process uses.

    What is not an entry as `publish` leaves it, or not of this user, is not touched.
    """
    with contextlib.suppress(OSError):
        entries = {entry: (entry / SUM).stat().st_mtime for entry in new.parent.iterdir() if _is_own(entry)}
        newest = sorted(entries, key=lambda entry: entries[entry], reverse=True)
        same = [entry for entry in newest if _read_sources(entry) == _read_sources(new)]
        recent = [entry for entry in newest if time.time() - entries[entry] < DAY]
        for entry in set(newest) - {new, *same[:KEPT], *(set(recent) - set(same))}:
            _remove_unused(entry)


def _read_sources(entry: Path) -> str | None:
    """Return the part of an entry's name that stands for its sources; None if it was named before names had one."""
    found = ENTRY.fullmatch(entry.name)
    return found["sources"] if found else None


def _is_own(entry: Path) -> bool:
    """Return whether this is an entry, whole or damaged, that this user made."""
    with contextlib.suppress(OSError):
        is_entry = ENTRY.fullmatch(entry.name) is not None and entry.is_dir() and not entry.is_symlink()
        return is_entry and {file.name for file in entry.iterdir()} == {LIBRARY, SUM} and is_safe(entry, entry / SUM)
    return False


def _remove_unused(entry: Path) -> None:
    """Remove an entry unless a process has locked it. It loses its name first: nobody finds half of it."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(entry / SUM, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            removed = Path(tempfile.mkdtemp(prefix="damaged-", dir=entry.parent))
            os.rename(entry, removed / entry.name)
            shutil.rmtree(removed, ignore_errors=True)
        finally:
            os.close(descriptor)


def _remove_stale(parent: Path) -> None:
    """Remove what a killed process left behind."""
    for pattern in ("building-*", "damaged-*"):
        for left in parent.glob(pattern):
            if time.time() - left.stat().st_mtime > DAY:
                shutil.rmtree(left, ignore_errors=True)


def _compute_sha256(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()
