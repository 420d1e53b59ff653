"""The one shared library of this process, made when it is first asked for."""

import atexit
import contextlib
import ctypes
import logging
import os
import shutil
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.compute.kernels.native import cache, compiler, packaged
from regard.compute.kernels.native.tensor_memory import is_reachable

SOURCES = Path(__file__).parent
WORTH_COMPILING = 1 << 16  # numbers from which compiling pays; a library that exists already is used for any size
SUFFIX = {torch.float32: "float", torch.float64: "double"}


class Library:
    """A loaded library. Its functions return 0, or a number that says what failed."""

    def __init__(self, path: Path, opened: ctypes.CDLL | None = None, suffix: str = "") -> None:
        self.path = path
        self.suffix = suffix  # behind the name of every function: the instruction set that it was compiled for
        self._library = opened or ctypes.CDLL(str(path))
        self._functions: dict[str, Callable[..., int]] = {}

    def function(self, name: str, *arguments: type) -> Callable[..., int]:
        """Return the C function of that name, bound once. Calling it releases Python's lock."""
        found = self._functions.get(name)
        if found is None:
            function: Any = getattr(self._library, name + self.suffix)
            function.argtypes, function.restype = arguments, ctypes.c_int
            found = self._functions[name] = function
        return found


class _LoaderState:
    """The state of the library: not asked for yet, not in the cache (so far), loaded, or given up for a reason."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.library: Library | None = None
        self.searched_cache = False
        self.is_final = False
        self.reason = ""


_holder = _LoaderState()


def get_loaded() -> Library | None:
    """Return the library if this process has loaded it already."""
    return _holder.library


def is_disabled() -> bool:
    """Return whether the user turned compiling off."""
    return os.environ.get(compiler.VARIABLE, "unset").strip().lower() in ("", "none")


def get_failure() -> str:
    """Return why this process will not have the library; empty while it may."""
    return f"{compiler.VARIABLE} says so" if not _holder.library and is_disabled() else _holder.reason


def describe_state() -> str:
    """Return "loaded", or why this process will not have the library; empty while it may."""
    return "loaded" if get_loaded() else get_failure()


def load_library(*, build: bool = True) -> Library | None:
    """Return the library, or None if it cannot be built: warn once then, and never try again in this process.

    With `build=False` it is only loaded from the cache, which costs milliseconds; a later call may still build it.
    """
    if _holder.is_final or (_holder.searched_cache and not build):
        return _holder.library
    with _holder.lock:
        if not _holder.is_final:
            _load_once(build)
    return _holder.library


def find_library(tensor: Tensor, *others: Tensor | None, size: int | None = None) -> Library | None:
    """Return the library, or None if torch has to compute: another device or dtype, or no memory to point to.

    It is compiled if the tensor, or a table of that `size`, is worth it.
    """
    if tensor.dtype not in SUFFIX or not is_reachable(tensor, *others):
        return None
    return load_library(build=(tensor.numel() if size is None else size) >= WORTH_COMPILING)


def _load_once(build: bool) -> None:
    _holder.searched_cache = True
    if is_disabled():
        _holder.is_final = True
        return
    try:
        _holder.library = _find_or_build(build)
        _holder.is_final = build or _holder.library is not None
    except (compiler.BuildError, OSError) as error:
        if build or isinstance(error, compiler.HungError):  # a search of the cache alone may be repeated
            _holder.is_final, _holder.reason = True, str(error)
            message = f"regard runs without its compiled kernels, which is slower: {error}."
            warnings.warn(message, RuntimeWarning, stacklevel=4)


def _find_or_build(build: bool) -> Library | None:
    """Load what the wheel brought, or from the cache what was compiled before; else compile it, if `build`."""
    brought = packaged.find_packaged(SOURCES)
    if brought is not None:
        with contextlib.suppress(OSError):  # not for this machine: compile
            return Library(brought, *packaged.open_packaged(brought))
    command = compiler.find_compiler()
    files = sorted([*SOURCES.glob("*.cpp"), *SOURCES.glob("*.hpp")])
    flags = [repr(attempt) for attempt in compiler.list_attempts()]
    facts = (" ".join(command), compiler.get_version(command), *flags, cache.describe_processor(), torch.__version__)
    entry = cache.find_folder() / cache.name_entry(files, *facts)
    found = cache.find_entry(entry)
    if found is not None:
        cache.mark_used(entry)
        try:
            return Library(found)
        except OSError:
            shutil.rmtree(entry, ignore_errors=True)  # intact, but it does not load here: compile it again
    return _build(command, entry) if build else None


def _build(command: tuple[str, ...], entry: Path) -> Library:
    workshop = cache.make_build_folder(entry.parent)
    atexit.register(shutil.rmtree, workshop, ignore_errors=True)
    sources = sorted(SOURCES.glob("*.cpp"))
    first: Exception | None = None
    logging.getLogger("regard").warning("regard compiles its kernels, once on this machine, which takes some seconds")
    compiler.probe(command, workshop)
    for attempt in compiler.list_attempts():
        try:
            made = compiler.build(command, attempt, sources, workshop)
            ctypes.CDLL(str(made))  # a library that does not load is no library: try plainer flags
        except compiler.HungError:
            raise
        except (compiler.BuildError, OSError) as error:
            first = first or error
            continue
        published = cache.publish(made, entry)
        if published.parent == entry:
            cache.mark_used(entry)
            cache.remove_old_entries(entry)
        return Library(published)
    raise compiler.BuildError(str(first))
