"""Killed with -9 at any moment and resumed, a run ends with the same bits as one that was never killed."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import Toy, collect_events, make_toy_config, read_contents

from regard.training import (
    DataShare,
    Finished,
    Loss,
    Noted,
    Saved,
    Started,
    Stepped,
    find_checkpoints,
    read_safetensors,
    train,
)

SCRIPT = Path(__file__).parent / "toy_training.py"


def start(*arguments: object) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def run(*arguments: object) -> list[dict[str, Any]]:
    output, _ = start(*arguments).communicate(timeout=800)
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    finished = collect_events(folder)[-1]
    assert isinstance(finished, Finished)
    assert finished.reason == "steps"
    return folder


@pytest.mark.slow
def test_killed_at_random_moments_ends_with_the_same_bits(tmp_path: Path, whole_run: Path) -> None:
    moments = random.Random(7)
    delays = [moments.uniform(0.0, 0.25) for _ in range(20)]
    events = run(tmp_path / "run", "--kill-after", *delays)
    assert events[-1]["times"] >= 10
    assert read_contents(tmp_path / "run") == read_contents(whole_run)


@pytest.mark.slow
def test_a_fresh_interpreter_goes_on_with_the_same_bits(tmp_path: Path, whole_run: Path) -> None:
    with start(tmp_path / "run") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["event"] == "saved":
                process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    events = run(tmp_path / "run", "--resume")
    assert events[0]["event"] == "started"
    assert events[0]["step"] > 0
    assert events[-1]["reason"] == "steps"
    assert read_contents(tmp_path / "run") == read_contents(whole_run)


@pytest.fixture
def _hangup_by_default() -> Iterator[None]:
    """Take SIGHUP as a terminal sends it: where tests run under nohup, it is ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_hangup_by_default")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_saves_and_says_how_to_go_on(tmp_path: Path, whole_run: Path, number: signal.Signals) -> None:
    folder, config = tmp_path / "my run", make_toy_config(tmp_path / "my run")
    handler = signal.getsignal(number)
    events = []
    for event in train(Toy(config), config):
        events.append(event)
        if isinstance(event, Stepped) and event.step == 9:
            os.kill(os.getpid(), number)
    assert events[-2] == Saved(10, folder / "checkpoints" / "000000010")
    assert events[-1] == Finished("interrupted", 10, events[-1].best, folder, f"regard resume '{folder}'")
    assert signal.getsignal(number) is handler
    resumed = collect_events(folder, resume=True)
    assert resumed[0].step == 10
    assert read_contents(folder) == read_contents(whole_run)


def test_nohup_is_respected(tmp_path: Path) -> None:
    config, before = make_toy_config(tmp_path / "run"), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        for event in train(Toy(config), config):
            if isinstance(event, Stepped):
                os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert isinstance(event, Finished)
    assert event.reason != "interrupted"


def test_whoever_reads_the_events_can_stop_the_run(tmp_path: Path) -> None:
    config = make_toy_config(tmp_path / "run")
    events = list(train(Toy(config), config, stop=lambda: True))
    assert events[-1].reason == "interrupted"
    assert events[-1].step == 1


def test_a_finished_run_has_nothing_left_to_do(whole_run: Path) -> None:
    before = read_contents(whole_run)
    assert [type(event) for event in collect_events(whole_run, resume=True)] == [Started, Finished]
    assert read_contents(whole_run) == before


def test_more_steps_may_be_asked_for_later(tmp_path: Path) -> None:
    collect_events(tmp_path / "run", training__stop__steps=24)
    events = collect_events(tmp_path / "run", resume=True, training__stop__steps=32)
    assert events[1] == Noted("training.stop.steps was 24, is 32")
    collect_events(tmp_path / "direct", training__stop__steps=32)
    assert read_contents(tmp_path / "run") == read_contents(tmp_path / "direct")
    assert "# training.stop.steps was 24, is 32" in (tmp_path / "run" / "command.txt").read_text()


def test_what_a_reader_of_events_draws_changes_nothing(tmp_path: Path, whole_run: Path) -> None:
    config = make_toy_config(tmp_path / "run")
    for _ in train(Toy(config), config):
        torch.rand(3)
    assert read_contents(tmp_path / "run") == read_contents(whole_run)


def test_tied_weights_are_stored_once(whole_run: Path) -> None:
    assert "out.weight" not in read_safetensors(whole_run / "weights.safetensors")


class FailingTask(Toy):
    """A task whose data or measurement fails once, at a step of choice."""

    where: str
    at: int
    calls = 0

    def fail(self, where: str) -> None:
        type(self).calls += where == self.where
        if where == self.where and self.calls == self.at:
            raise RuntimeError("failed")

    def loss(self, model: torch.nn.Module, batch: torch.Tensor) -> Loss:
        self.fail("loss" if model.training else "")
        found = super().loss(model, batch)
        self.fail("after loss" if model.training else "")
        return found

    def measure(self, model: torch.nn.Module, part: DataShare) -> Mapping[str, float]:
        self.fail("measure")
        return super().measure(model, part)


@pytest.mark.parametrize(
    ("where", "at", "step"),
    [
        ("loss", 5, 4),
        ("after loss", 5, 4),
        ("measure", 2, 8),
        ("measure", 3, 16),
        ("measure", 6, 40),
        ("loss", 1, None),
    ],
)
@pytest.mark.parametrize("save", [None, 3])
def test_an_error_saves_what_it_would_lose_and_the_run_goes_on_to_the_same_bits(
    tmp_path: Path, where: str, at: int, step: int | None, save: int | None
) -> None:
    collect_events(tmp_path / "whole", training__every__save=save)
    folder, seen = tmp_path / "run", []
    task = type("Once", (FailingTask,), {"where": where, "at": at})
    config = make_toy_config(folder, training__every__save=save)
    with pytest.raises(RuntimeError, match=r"^failed$"):
        seen.extend(train(task(config), config))
    assert [int(path.name) for path in find_checkpoints(folder)][-1:] == ([] if step is None else [step])
    resumed = collect_events(folder, resume=True, training__every__save=save)
    assert resumed[0].step == (step or 0)
    assert read_contents(folder) == read_contents(tmp_path / "whole")
