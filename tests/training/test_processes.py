"""Two real processes (gloo) train as one does, survive the death of one, and leave files for any number."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import collect_events

from regard.errors import InputError
from regard.training import Evaluated, Stepped, find_checkpoints
from regard.training.checkpoint import read_tensors
from regard.training.failures import share_failures
from regard.training.step import check_gradients

SCRIPT = str(Path(__file__).parent / "toy_training.py")
# No dropout, because two processes draw other numbers than one; a quick schedule, so that errors would show.
SETTINGS = {
    "model.dropout": 0.0,
    "training.optimizer.rate": 0.01,
    "training.optimizer.accumulate": 2,
    "training.schedule.warmup": 5,
    "training.every.log": 2,
}
FLAGS = [f"{name}={value}" for name, value in SETTINGS.items()]
UNDERSCORED = {name.replace(".", "__"): value for name, value in SETTINGS.items()}


def run(command: list[object], code: int = 0) -> list[dict[str, Any]]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    finished = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, env=environment, timeout=800, check=False
    )
    lines = [line for line in finished.stdout.splitlines() if line.startswith("{")]
    assert finished.returncode == code, finished.stdout + finished.stderr
    assert "Traceback" not in finished.stderr, finished.stderr
    return [json.loads(line) for line in lines]


def read_curve(folder: Path) -> list[tuple[int, float]]:
    """Step and loss, of training and of evaluation, from the file: no step twice, none left out."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], line["metrics"]["loss"] if "metrics" in line else line["loss"]) for line in lines]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "alone"
    events = collect_events(folder, **UNDERSCORED)
    losses = [event.loss for event in events if isinstance(event, Stepped)]
    assert losses[-1] < 0.9 * losses[0], "it must learn something, or equal curves prove nothing"
    assert any(isinstance(event, Evaluated) for event in events)
    return folder


def assert_same(folder: Path, alone: Path) -> None:
    steps, losses = zip(*read_curve(folder), strict=True)
    expected_steps, expected = zip(*read_curve(alone), strict=True)
    assert steps == expected_steps
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected), rtol=1e-4, atol=1e-5)
    last, expected_last = find_checkpoints(folder)[-1], find_checkpoints(alone)[-1]
    torch.testing.assert_close(
        read_tensors(last, "weights"), read_tensors(expected_last, "weights"), rtol=1e-3, atol=1e-4
    )


@pytest.mark.slow
def test_two_processes_under_torchrun_are_one_even_if_one_dies(tmp_path: Path, alone: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    parallel = [*FLAGS, "training.parallel=ddp"]
    events = run([*torchrun, "--max-restarts=1", SCRIPT, tmp_path / "run", *parallel, "--die-at", 16])
    starts = [event["step"] for event in events if event["event"] == "started"]
    assert starts[0] == 0
    assert starts[1] >= 16  # the other process saved what it had when it was left alone
    assert [event["processes"] for event in events if event["event"] == "started"] == [2, 2]
    assert_same(tmp_path / "run", alone)


@pytest.mark.slow
def test_one_process_becomes_two_with_shards_and_one_again(tmp_path: Path, alone: Path) -> None:
    folder = tmp_path / "run"
    collect_events(folder, **UNDERSCORED | {"training__stop__steps": 24})
    flags = [*FLAGS, "training.parallel=fsdp", "training.stop.steps=32", "--processes", 2, "--restarts", 1]
    events = run([sys.executable, SCRIPT, folder, *flags, "--resume", "--die-at", 28])
    assert [event["step"] for event in events if event["event"] == "started"] == [24, 27]
    assert {path.name for path in find_checkpoints(folder)[-1].iterdir()} >= {"weights", "optimizer"}
    collect_events(folder, resume=True, **UNDERSCORED)
    assert_same(folder, alone)


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [0, 1])
def test_an_error_in_one_process_ends_all_with_its_sentence_once_and_a_restart_does_not_hide_it(
    tmp_path: Path, alone: Path, restarts: int
) -> None:
    folder, flags = tmp_path / "run", [*FLAGS, "training.parallel=ddp", "training.every.save=none"]
    launched = [sys.executable, SCRIPT, folder, *flags, "--processes", 2, "--restarts", restarts, "--fail-at", 6]
    events = run(launched, code=2)
    said = [event["text"] for event in events if event["event"] == "error"]
    assert said == ["toy: got an error in process 1, expected none; fix: none"]
    assert find_checkpoints(folder), "what the other process had done is saved"
    collect_events(folder, resume=True, **UNDERSCORED)
    assert_same(folder, alone)


@pytest.mark.slow
def test_a_process_that_is_killed_ends_all_with_a_sentence(tmp_path: Path) -> None:
    launched = [sys.executable, SCRIPT, tmp_path / "run", *FLAGS, "training.parallel=ddp", "--processes", 2]
    events = run([*launched, "--die-at", 6], code=2)
    assert [event["text"] for event in events if event["event"] == "error"] == [
        "processes: got process 1 ended by SIGKILL, expected all to finish; fix: look at its output above; "
        "regard resume goes on from the last checkpoint, with --restarts 1 by itself"
    ]


def test_a_parameter_that_takes_no_part_is_named_before_anyone_waits_for_it() -> None:
    model = torch.nn.Linear(2, 3)
    model.weight.sum().backward()
    with pytest.raises(InputError) as caught:
        check_gradients(model)
    assert str(caught.value) == (
        "model: got no gradient for bias, expected one for every parameter; "
        "fix: freeze it with requires_grad_(False), or train in one process"
    )
    model.bias.requires_grad_(False)
    check_gradients(model)


def test_several_processes_must_be_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=r"^training.parallel: got none with 2 processes, expected ddp or fsdp; fix"):
        collect_events(tmp_path / "run")


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^training.device: got moon, expected a device that torch has here; fix"):
        collect_events(tmp_path / "run", training__device="moon")


LETTING_GO = """
import sys
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from regard.training.runtime import enter_group

sys.setswitchinterval(1000)  # Python's lock is given away by whoever waits, not by whoever works
for _ in range(20):  # each had two chances in five to be the last
    enter_group("gloo", distributed.HashStore(), 0, 1)
    wrapped = DistributedDataParallel(torch.nn.Linear(2, 2))
    for _ in range(300):
        distributed.broadcast(torch.ones(2), 0, async_op=True)
    distributed.destroy_process_group()
    del wrapped
"""


def test_letting_go_of_a_group_does_not_wait_for_threads_that_wait_for_python() -> None:
    """Without `enter_group` this never ends: DDP's reducer joins a thread of gloo that needs the lock it holds."""
    run([sys.executable, "-c", LETTING_GO])


def test_the_reason_of_a_failure_reaches_the_processes_that_only_lose_a_peer() -> None:
    store = torch.distributed.HashStore()
    sentence = "data: got nothing, expected pairs; fix: give some"
    with pytest.raises(InputError, match=sentence), share_failures(store, rank=1):
        raise InputError(sentence)
    with pytest.raises(InputError, match=sentence) as caught, share_failures(store, rank=0):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:1] Connection closed by peer")
    assert caught.value.relayed
