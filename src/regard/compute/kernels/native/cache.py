"""Compiled libraries on disk: found by what they were made from, and never half of one.

An entry is a folder with the library and its SHA-256. It appears by one rename of a finished folder, so a reader sees
all of it or nothing, whoever else is compiling; and what a disk or a person damaged later fails the sum.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

VARIABLE = "REGARD_CACHE"
LIBRARY = "library.so"
SUM = "library.sha256"


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


def find_entry(entry: Path) -> Path | None:
    """Return the library of an entry, if it is whole and nobody else can have put it there."""
    with contextlib.suppress(OSError):
        library = entry / LIBRARY
        if not is_safe(entry.parent, entry, library, entry / SUM):
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


def _remove_stale(parent: Path) -> None:
    """Remove what a killed compiler left behind: a day is longer than any compilation."""
    for pattern in ("building-*", "damaged-*"):
        for left in parent.glob(pattern):
            if time.time() - left.stat().st_mtime > 86_400:
                shutil.rmtree(left, ignore_errors=True)


def _compute_sha256(library: Path) -> str:
    return hashlib.sha256(library.read_bytes()).hexdigest()
