"""Run commands that get Ctrl-C at a chosen call of a function: `python interrupted.py FOLDER` answers lines of JSON.

The process imports torch and makes a small run once; each command is run in a copy of it (`fork`). A case names the
command, at which call of a Python function the signal comes, and how: `once`; `swallowed`, by code
that drops the exception; `twice`, also while the first is answered; `blocked`, while a library computes for long;
`at exit`, when the command has ended.
"""

import atexit
import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

SLOWLY = 10**9  # rounds of a hash: minutes in which the main thread runs no Python


class Calls:
    """Counts calls of Python functions in the main thread, and sends the signal at one of them."""

    def __init__(self, at: int | None, how: str) -> None:
        self.at, self.how, self.count = at, how, 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        self.count += 1
        if self.count == self.at:
            sys.setprofile(None)
            self.interrupt()

    def interrupt(self) -> None:
        if self.how == "blocked":
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT), daemon=True).start()
            hashlib.pbkdf2_hmac("sha256", b"", b"", SLOWLY)
        elif self.how == "swallowed":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                return
        else:
            signal.raise_signal(signal.SIGINT)


def run_child(case: dict[str, Any], folder: Path) -> None:
    """Run one command as the interpreter would."""
    from regard import cli
    from regard.cli import interruption

    os.chdir(folder)
    for number, name, flags in ((0, "input", os.O_RDONLY), (1, "out", os.O_WRONLY), (2, "err", os.O_WRONLY)):
        handle = os.open(folder / name, flags | os.O_CREAT | (os.O_TRUNC if number else 0))
        os.dup2(handle, number)
        os.close(handle)
    sys.argv = ["regard", *case["words"]]
    interruption.REMINDER, interruption.LAST = 0.01, 1.0
    calls = Calls(case["at"], case["how"])
    do_around(interruption.Interruption, "listen", after=lambda: sys.setprofile(calls))
    if case["how"] == "twice":
        do_around(interruption.Interruption, "finish", before=lambda: signal.raise_signal(signal.SIGINT))
    if case["how"] == "at exit":
        atexit.register(signal.raise_signal, signal.SIGINT)
        cli.main()
        return
    try:
        cli.main()
    except SystemExit as ending:
        os._exit(int(ending.code or 0))  # what the interpreter does at its end takes a second
    sys.stdout.flush()
    os._exit(0)


def do_around(
    kind: type, name: str, before: Callable[[], object] = lambda: None, after: Callable[[], object] = lambda: None
) -> None:
    """Let something be done around each call of a method."""
    method = getattr(kind, name)

    def call(*arguments: object) -> None:
        before()
        method(*arguments)
        after()

    setattr(kind, name, call)


def answer(case: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """Return how a command ended; nothing in its own process."""
    (folder / "input").write_text("two three\n")
    process = os.fork()
    if not process:
        run_child(case, folder)
        return None
    _, status = os.waitpid(process, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "out": (folder / "out").read_text(encoding="utf-8", errors="replace"),
        "err": (folder / "err").read_text(encoding="utf-8", errors="replace"),
    }


def prepare(folder: Path) -> None:
    """Import what commands import, and make what they work on: a run with two checkpoints, text, a recording."""
    import torch

    from regard.cli.commands import run_command
    from regard.inspect.recording import Recording

    words = "train translation numbers --preset transformer-tiny --folder run --stop.steps 2 --every.save 1"
    words += " --data.size 20 --data.held_out 2 --model.size 8 --transformer.layers 1 --transformer.decoder_layers 1"
    words += " --transformer.heads 2 --threads 1"
    os.chdir(folder)
    sys.argv = ["regard", *words.split()]
    run_command()
    Recording.from_weights({"eye": torch.eye(3)}).save(folder / "looked.safetensors")


def main(respond: Callable[[str], object]) -> None:
    """Answer every line of standard input."""
    folder = Path(sys.argv[1])
    prepare(folder)
    respond("ready")
    for line in sys.stdin:
        answered = answer(json.loads(line), folder)
        if answered is None:
            return  # in the copy
        respond(json.dumps(answered))


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what commands print while they are prepared
    main(lambda text: print(text, file=answers, flush=True))
