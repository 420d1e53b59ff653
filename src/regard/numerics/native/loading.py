"""The one shared library of this process, made when it is first asked for."""

import atexit
import ctypes
import shutil
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.numerics.native import cache, compiler

SOURCES = Path(__file__).parent


class Library:
    """A loaded library. Its functions return 0, or a number that says what failed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        self._functions: dict[str, Callable[..., int]] = {}

    def function(self, name: str, *arguments: type) -> Callable[..., int]:
        """The C function of that name, bound once. Calling it releases Python's lock."""
        found = self._functions.get(name)
        if found is None:
            function: Any = getattr(self._library, name)
            function.argtypes, function.restype = arguments, ctypes.c_int
            found = self._functions[name] = function
        return found


class _Holder:
    """What became of the library: not asked for yet, not on disk (so far), there, or given up for a reason."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.library: Library | None = None
        self.looked = False
        self.settled = False
        self.reason = ""


_holder = _Holder()


def loaded() -> Library | None:
    """The library if this process has it already."""
    return _holder.library


def given_up() -> str:
    """Why this process will not have the library; empty while it may."""
    return f"{compiler.VARIABLE} says so" if compiler.disabled() and not _holder.library else _holder.reason


def state() -> str:
    """Return "loaded", or why this process will not have the library; empty while it may."""
    return "loaded" if _holder.library else given_up()


def library(*, build: bool = True) -> Library | None:
    """The library, or None where none can be had: then say so once, and never try again in this process.

    With `build=False` it is only taken from the cache, which costs milliseconds; a later call may still build it.
    """
    if _holder.settled or (_holder.looked and not build):
        return _holder.library
    with _holder.lock:
        if not _holder.settled:
            _settle(build)
    return _holder.library


def _settle(build: bool) -> None:
    _holder.looked = True
    if compiler.disabled():
        _holder.settled = True
        return
    try:
        _holder.library = _obtain(build)
        _holder.settled = build or _holder.library is not None
    except (compiler.BuildError, OSError) as error:
        if build or isinstance(error, compiler.HungError):  # who only looked has lost nothing yet
            _holder.settled, _holder.reason = True, str(error)
            message = f"regard runs without its compiled kernels, which is slower: {error}."
            warnings.warn(message, RuntimeWarning, stacklevel=4)


def _obtain(build: bool) -> Library | None:
    """From the cache if it is there and loads; else compiled, if `build`."""
    command = compiler.find()
    files = sorted([*SOURCES.glob("*.cpp"), *SOURCES.glob("*.hpp")])
    flags = [repr(attempt) for attempt in compiler.attempts()]
    facts = (" ".join(command), compiler.version(command), *flags, cache.processor(), torch.__version__)
    entry = cache.folder() / f"native-{cache.key(files, *facts)}"
    found = cache.find(entry)
    if found is not None:
        try:
            return Library(found)
        except OSError:
            shutil.rmtree(entry, ignore_errors=True)  # whole, yet of no use here: make it anew
    return _build(command, entry) if build else None


def _build(command: tuple[str, ...], entry: Path) -> Library:
    workshop = cache.workshop(entry.parent)
    atexit.register(shutil.rmtree, workshop, ignore_errors=True)
    sources = sorted(SOURCES.glob("*.cpp"))
    first: Exception | None = None
    compiler.probe(command, workshop)
    for attempt in compiler.attempts():
        try:
            made = compiler.build(command, attempt, sources, workshop)
            ctypes.CDLL(str(made))  # a library that does not load is no library: try plainer flags
        except compiler.HungError:
            raise
        except (compiler.BuildError, OSError) as error:
            first = first or error
            continue
        return Library(cache.publish(made, entry))
    raise compiler.BuildError(str(first))
