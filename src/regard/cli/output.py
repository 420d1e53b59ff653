"""Write answers to standard output unchanged, or say why that cannot be done."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from regard.datasets.output_files import replace_output
from regard.errors import wrong

JsonFlag = Annotated[bool, Parameter(name="--json", negative="")]


def check_streams() -> None:
    """Raise if standard output is closed; let text for people be written in any encoding."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    if sys.stdout is None:
        fix = "give it a terminal, a file or a pipe: regard … > answers.txt"
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
        raise wrong("output", "standard output, which is closed", "somewhere to write the answer", fix)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # a stream that Python did not open
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


class TrainingConsole(Console):
    """A console whose reader may go away, as `head` does: what is printed then goes nowhere, and nothing is raised."""

    reader_gone = False

    def on_broken_pipe(self) -> None:
        self.reader_gone = self.quiet = True
        discard_output()


def open_console(*, errors: bool = False) -> Console:
    """Return a console for text for people: in a terminal lines break between words, in a file they do not break."""
    is_terminal = Console(stderr=errors).is_terminal
    return Console(highlight=False, stderr=errors, soft_wrap=not is_terminal)


def open_training_console() -> TrainingConsole:
    """Return the console of a training."""
    return TrainingConsole(highlight=False, soft_wrap=not Console().is_terminal)


def print_path(kind: str, path: Path) -> None:
    """Say where something was written: `picture: map.png`."""
    open_console().print(f"{kind}: {path}", markup=False)


def print_error(text: str) -> None:
    """Print a sentence to standard error, whatever it contains; in a terminal it breaks between words."""
    open_console(errors=True).print(f"regard: {text}", markup=False, emoji=False)


@contextlib.contextmanager
def redirect_output(path: Path) -> Iterator[None]:
    """Let what is printed go to a file in UTF-8."""
    if not path.parent.is_dir():
        raise wrong("output", path, "a folder that exists", f"make {path.parent} first")
    if path.is_dir():
        raise wrong("output", f"{path}, which is a folder", "a file", f"write {path / 'answers.tsv'}")
    before: IO[Any] = sys.stdout
    with replace_output(path) as written, written.open("w", encoding="utf-8") as file:
        sys.stdout = file
        try:
            yield
        finally:
            sys.stdout = before


def print_text(text: str) -> None:
    """Write an answer as it is: one with `\\xe9` for é would be another answer."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        got = f"{encoding}, which has no {text[error.start]!a}"
        raise wrong("output", got, "an encoding for all text", "set PYTHONIOENCODING=utf-8") from None
    sys.stdout.write(f"{text}\n")


def print_json(values: Any) -> None:
    """Write one object on a line, in ASCII if the encoding of standard output has not all characters."""
    text = json.dumps(values, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(values)
    sys.stdout.write(f"{text}\n")


def discard_output() -> None:
    """Send further output nowhere: the reader has gone or the disk is full, and Python would fail again at its exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
