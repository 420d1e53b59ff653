"""Ctrl-C at any moment of any command: one sentence that says how to go on, exit code 130, soon, no traceback."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

from regard.cli.commands import app
from regard.cli.interruption import AGAIN, KEPT
from regard.tasks import comparison
from regard.tasks.known_comparisons import COMPARISONS
from regard.training import Finished
from regard.training.interrupt import hide_from_children

Answers = Callable[..., dict[str, Any]]
SMALL = "train translation numbers --folder other --stop.steps 2 --data.size 20 --data.held_out 2 --model.size 8"
COMMANDS = {
    "list": "list",
    "explain": "explain additive",
    "verify": "verify",
    "train": f"{SMALL} --model.recurrent.hidden 8 --model.attention.hidden 8",
    "runs": "runs .",
    "resume": "resume run",
    "evaluate": "evaluate run",
    "predict": "predict run two",
    "translate": "translate run",
    "transcribe": "transcribe run sound.wav",
    "data": "data",
    "answer": "answer run text question",
    "caption": "caption run photo.png",
    "ask": "ask run photo.png question",
    "average": "average run --count 2 --output mean.safetensors",
    "export": "export run exported",
    "show": "show run two",
    "serve": "serve --port 0 run",
    "bench": "bench --seconds 0.01",
    "compare": "compare layers --lengths 4 8 --parameters 256",
    "demo": "demo",
}
ENDS_SOON = {"transcribe", "answer", "caption", "ask"}  # a run of another task: an error after some thousand calls


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """Return a function that says how a command ended to which Ctrl-C came."""
    folder = tmp_path_factory.mktemp("interrupted")
    command = [sys.executable, str(Path(__file__).with_name("interrupted.py")), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        def answer(words: str, how: str, at: int | None = None) -> dict[str, Any]:
            print(json.dumps({"words": words.split(), "at": at, "how": how}), file=process.stdin, flush=True)
            assert process.stdout is not None
            answered: dict[str, Any] = json.loads(process.stdout.readline())
            return answered

        yield answer
        process.stdin.close()


def check_sentence(done: dict[str, Any], command: str) -> None:
    assert (done["code"], done["err"]) == (130, f"regard: interrupted; {KEPT.get(command, AGAIN)}\n"), done
    assert "Traceback" not in done["out"]


def test_every_command_is_interrupted_below() -> None:
    assert {name for name in app if not name.startswith("-")} == set(COMMANDS)
    assert set(KEPT) < set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_is_one_sentence(command: str, ask: Answers) -> None:
    for at in (1, 300, 1000 if command in ENDS_SOON else 10_000):
        check_sentence(ask(COMMANDS[command], "once", at), command)


@pytest.mark.parametrize("how", ["swallowed", "twice", "blocked"])
@pytest.mark.parametrize("command", ["verify", "evaluate", "translate", "serve"])
def test_ctrl_c_ends_also_what_does_not_listen(command: str, how: str, ask: Answers) -> None:
    """Code that drops exceptions, a second Ctrl-C while the first is answered, a library that computes for long."""
    check_sentence(ask(COMMANDS[command], how, 1000), command)


def test_ctrl_c_after_the_end_changes_nothing(ask: Answers) -> None:
    done = ask("explain additive", "at exit")
    assert (done["code"], done["err"]) == (0, "")
    assert "additive" in done["out"]


IMPORTING = """
import signal, sys
from regard.cli import main

def interrupt(event, arguments):
    global name
    if event == "import" and arguments[0] == name:
        name = ""
        signal.raise_signal(signal.SIGINT)

name = sys.argv.pop()
sys.addaudithook(interrupt)
main()
"""


@pytest.mark.parametrize("module", ["regard.cli.commands", "cyclopts", "rich.console", "torch", "numpy", "torch.nn"])
def test_ctrl_c_during_imports_is_one_sentence(module: str) -> None:
    command = [sys.executable, "-c", IMPORTING, "verify", module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    check_sentence({"code": done.returncode, "out": done.stdout, "err": done.stderr}, "verify")


def test_nothing_is_imported_before_ctrl_c_is_caught() -> None:
    code = "import sys, regard.cli; print([name for name in sys.modules if name.partition('.')[0] not in known])"
    known = "known = {*sys.stdlib_module_names, 'regard', '__main__'}"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r}); {known}; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


SOURCE = Path(__file__).parents[2] / "src"


def test_a_training_inside_a_comparison_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training answers Ctrl-C by itself and ends at its next step: what comes after it must not begin."""
    ended = Finished("interrupted", 1, None, Path(), "")
    monkeypatch.setattr(comparison, "train", lambda task, config: iter([ended]))
    with pytest.raises(KeyboardInterrupt):
        next(comparison.compare_variants(COMPARISONS["global-local"], [1]))


def test_processes_that_are_started_do_not_notice_ctrl_c() -> None:
    """The terminal sends it to them too; here their starter does."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('unharmed')"
    with hide_from_children():
        resource_tracker.ensure_running()  # as multiprocessing does before each process
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("unharmed\n", "")


def test_ctrl_c_reaches_whoever_hides_it_from_children() -> None:
    with pytest.raises(KeyboardInterrupt), hide_from_children():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
