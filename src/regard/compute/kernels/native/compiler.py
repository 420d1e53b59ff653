"""Find a compiler, and call it to build one shared library."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

VARIABLE = "REGARD_COMPILER"
FLAGS = "REGARD_CXXFLAGS"  # more flags for compiling and linking, as for a build that looks for mistakes
SECONDS = 600  # a compiler that takes longer than this for all sources together is taken for hung
MOMENT = 20  # … and one that takes longer than this to say what it is, or for a source of one line
COMMON = ("-std=c++17", "-O3", "-fPIC", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-w")
NATIVE = ("-march=native",)


class BuildError(Exception):
    """No library could be made; the message says why, in one sentence without a full stop."""


class HungError(BuildError):
    """The compiler did not end. It is not waited for again in this process, whatever flags are left to try."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One set of flags. `name` says what it is, for a person."""

    name: str
    compile: tuple[str, ...]
    link: tuple[str, ...]


def find_compiler() -> tuple[str, ...]:
    """Return the compiler's command: what `REGARD_COMPILER` names, else `$CXX`, else the first of the usual names."""
    named = os.environ.get(VARIABLE)
    if named is None and sys.platform == "win32":
        raise BuildError("on Windows no compiler is looked for")
    wanted = [named] if named else [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    for command in wanted:
        words = _split_command(command)
        if words and shutil.which(words[0]):
            return tuple(words)
    raise BuildError(f"{named} was not found" if named else "no C++ compiler was found")


def _split_command(command: str) -> list[str]:
    """Split as a shell would; return nothing if a shell would not take it, as with a lone quotation mark."""
    with contextlib.suppress(ValueError):
        return shlex.split(command)
    return []


def get_version(compiler: tuple[str, ...]) -> str:
    """Return what the compiler says its version is."""
    return _run([*compiler, "--version"], Path(__file__).parent, time.monotonic() + MOMENT)


def probe(compiler: tuple[str, ...], folder: Path) -> None:
    """Compile one line: a compiler that hangs at that is not given our sources, which take a slow machine minutes."""
    source = folder / "probe.cpp"
    source.write_text("int regard_probe;\n")
    _run([*compiler, "-c", str(source), "-o", str(folder / "probe.o")], folder, time.monotonic() + MOMENT)
    for file in folder.glob("probe.*"):
        file.unlink(missing_ok=True)


def list_attempts() -> Iterator[Attempt]:
    """Yield flags, from the most wanted to the plainest.

    torch's own libgomp comes first: with it our loops and torch's share one pool of threads. The library is then
    linked without -fopenmp, which would name the system's libgomp as well.
    """
    more = tuple(_split_command(os.environ.get(FLAGS, "")))
    for processor, flags in (("this processor", (*NATIVE, *more)), ("any processor", more)):
        for gomp in find_torch_gomp():
            yield Attempt(f"torch's threads, {processor}", (*COMMON, *flags, "-fopenmp"), (*more, str(gomp)))
        yield Attempt(f"OpenMP, {processor}", (*COMMON, *flags, "-fopenmp"), (*more, "-fopenmp"))
        yield Attempt(f"one thread, {processor}", (*COMMON, *flags), more)


def find_torch_gomp() -> list[Path]:
    """Return torch's own OpenMP runtime, if it brings GNU's, which alone has the symbols that we need."""
    folder = Path(torch.__file__).parent
    return sorted([*folder.glob("lib/libgomp*.so*"), *folder.parent.glob("torch.libs/libgomp*.so*")])[:1]


def build(compiler: tuple[str, ...], attempt: Attempt, sources: list[Path], folder: Path) -> Path:
    """Compile each source at the same time as the others, then link them in `folder`."""
    objects = [folder / f"{source.stem}.o" for source in sources]
    commands = [
        [*compiler, *attempt.compile, "-c", str(source), "-o", str(target)]
        for source, target in zip(sources, objects, strict=True)
    ]
    latest = time.monotonic() + SECONDS
    running: list[subprocess.Popen[str]] = []
    try:
        running.extend(_start(command, folder) for command in commands)
        for process in running:
            _finish(process, latest)
    finally:
        for process in running:
            _end(process)
    library = folder / "library.so"
    _run([*compiler, "-shared", "-o", str(library), *map(str, objects), *attempt.link], folder, latest)
    for target in objects:
        target.unlink(missing_ok=True)
    return library


def _run(command: list[str], folder: Path, latest: float) -> str:
    return _finish(_start(command, folder), latest)


def _start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start it in a session of its own: a compiler starts more processes, and all are ended together."""
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise BuildError(f"{command[0]} could not be started ({error.strerror})") from error


def _finish(process: subprocess.Popen[str], latest: float) -> str:
    begun = time.monotonic()
    try:
        output, _ = process.communicate(timeout=max(0.0, latest - begun))
    except subprocess.TimeoutExpired as error:
        _end(process)
        raise HungError(f"the compiler did not end within {time.monotonic() - begun:.3g} seconds") from error
    if process.returncode:
        lines = [line for line in output.splitlines() if "error" in line.lower()] or output.splitlines()
        raise BuildError(f"the compiler ended with {process.returncode}" + (f" ({lines[0]})" if lines else ""))
    return output


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.stdout is not None and not process.stdout.closed:
        process.communicate()
