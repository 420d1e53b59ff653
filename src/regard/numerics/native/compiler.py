"""Which compiler there is, and how it is asked for one shared library."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

VARIABLE = "REGARD_COMPILER"
SECONDS = 300  # a compiler that takes longer than this is taken for hung
COMMON = ("-std=c++17", "-O3", "-fPIC", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-w")
NATIVE = ("-march=native",)


class BuildError(Exception):
    """No library could be made; the message says why, in one sentence without a full stop."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One set of flags. `name` says what it is, for a person."""

    name: str
    compile: tuple[str, ...]
    link: tuple[str, ...]


def disabled() -> bool:
    """Whether the user wants no compiler."""
    return os.environ.get(VARIABLE, "unset").strip().lower() in ("", "none")


def find() -> tuple[str, ...]:
    """The compiler's command: what `REGARD_COMPILER` names, else `$CXX`, else the first of the usual names."""
    named = os.environ.get(VARIABLE)
    if named is None and sys.platform == "win32":
        raise BuildError("on Windows no compiler is looked for")
    wanted = [named] if named else [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    for command in wanted:
        words = shlex.split(command)
        if words and shutil.which(words[0]):
            return tuple(words)
    raise BuildError(f"{named} was not found" if named else "no C++ compiler was found")


def version(compiler: tuple[str, ...]) -> str:
    """What the compiler says it is."""
    return _run([*compiler, "--version"], Path(__file__).parent)


def attempts() -> Iterator[Attempt]:
    """Flags from the most wanted to the plainest.

    torch's own libgomp comes first: with it our loops and torch's share one pool of threads. The library is then
    linked without -fopenmp, which would name the system's libgomp as well.
    """
    for processor, flags in (("this processor", NATIVE), ("any processor", ())):
        for gomp in torch_gomp():
            yield Attempt(f"torch's threads, {processor}", (*COMMON, *flags, "-fopenmp"), (str(gomp),))
        yield Attempt(f"OpenMP, {processor}", (*COMMON, *flags, "-fopenmp"), ("-fopenmp",))
        yield Attempt(f"one thread, {processor}", (*COMMON, *flags), ())


def torch_gomp() -> list[Path]:
    """The OpenMP runtime inside torch's own folder, if it brings one: that of GNU alone has the symbols we need."""
    folder = Path(torch.__file__).parent
    return sorted([*folder.glob("lib/libgomp*.so*"), *folder.parent.glob("torch.libs/libgomp*.so*")])[:1]


def build(compiler: tuple[str, ...], attempt: Attempt, sources: list[Path], folder: Path) -> Path:
    """Compile each source at the same time as the others, then link them in `folder`."""
    objects = [folder / f"{source.stem}.o" for source in sources]
    commands = [
        [*compiler, *attempt.compile, "-c", str(source), "-o", str(target)]
        for source, target in zip(sources, objects, strict=True)
    ]
    running = [_start(command, folder) for command in commands]
    try:
        for process in running:
            _finish(process)
    finally:
        for process in running:
            _end(process)
    library = folder / "library.so"
    _run([*compiler, "-shared", "-o", str(library), *map(str, objects), *attempt.link], folder)
    for target in objects:
        target.unlink(missing_ok=True)
    return library


def _run(command: list[str], folder: Path) -> str:
    return _finish(_start(command, folder))


def _start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    """In a session of its own: a compiler is a family of processes, and is ended as one."""
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


def _finish(process: subprocess.Popen[str]) -> str:
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        _end(process)
        raise BuildError(f"the compiler took more than {SECONDS} seconds") from error
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
