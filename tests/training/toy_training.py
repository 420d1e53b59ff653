"""A tiny task with all that makes exactness hard, and a script to run, kill and resume it.

    python toy_training.py FOLDER [--resume] [name=value …] [--processes 2 --restarts 1] [--die-at 3] [--fail-at 3]

Prints one event a line, as JSON.
"""

import argparse
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import RegardError
from regard.training import (
    DataShare,
    Event,
    Goal,
    Intervals,
    LazyBatches,
    Loss,
    Stepped,
    StopCriteria,
    Training,
    configure,
    event_to_json,
    find_checkpoints,
    launch,
    train,
)

WORDS, SIZE, ITEMS = 11, 8, 61


@dataclass(frozen=True)
class ToyModel:
    dropout: float = 0.2
    bad_at: int = -1  # the epoch in which the loss becomes nan


@dataclass(frozen=True)
class ToyConfig:
    model: ToyModel = field(default_factory=ToyModel)
    training: Training = field(
        default_factory=lambda: Training(
            seed=3, keep=2, stop=StopCriteria(steps=40), every=Intervals(log=3, evaluate=8, save=3)
        )
    )


class Net(nn.Module):
    """Predicts the next word; has dropout, a tied matrix, a buffer and a method that is not forward."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, SIZE, padding_idx=0)
        self.recurrent = nn.GRU(SIZE, SIZE, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(SIZE, WORDS)
        self.out.weight = self.embedding.weight
        self.register_buffer("seen", torch.zeros(()))

    def read(self, words: Tensor) -> Tensor:
        self.seen += self.training
        states: Tensor = self.recurrent(self.dropout(self.embedding(words)))[0]
        return states

    def forward(self, words: Tensor) -> Tensor:
        logits: Tensor = self.out(self.dropout(self.read(words)))
        return logits


class Toy:
    goal = Goal("loss", "lower")

    def __init__(self, config: ToyConfig) -> None:
        self.config = config
        generator = torch.Generator().manual_seed(5)
        lengths = torch.randint(3, 8, (ITEMS,), generator=generator).tolist()
        self.items = [torch.randint(1, WORDS, (length,), generator=generator).sort().values for length in lengths]

    def model(self) -> nn.Module:
        return Net(self.config.model.dropout)

    def epoch(self, number: int, part: DataShare) -> Sequence[Tensor]:
        order = torch.randperm(ITEMS - 10, generator=torch.Generator().manual_seed(number)).tolist()
        groups = [part.select(order[start : start + 7]) for start in range(0, len(order), 7)]
        return LazyBatches(groups, lambda chosen: self.collate(chosen, number))

    def collate(self, chosen: Sequence[int], number: int = 0) -> Tensor:
        padded = nn.utils.rnn.pad_sequence([self.items[index] for index in chosen], batch_first=True)
        return padded * 0 + 12 if number == self.config.model.bad_at else padded

    def loss(self, model: nn.Module, batch: Tensor) -> Loss:
        if int(batch.max()) > WORDS:
            return Loss(model(batch * 0).sum() * float("nan"), 1)
        wanted = batch[:, 1:]
        logits = model.out(model.dropout(model.read(batch[:, :-1])))
        total = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=0, reduction="sum")
        return Loss(total, int((wanted > 0).sum()))

    def measure(self, model: nn.Module, part: DataShare) -> Mapping[str, float]:
        sums = {"loss": 0.0, "tokens": 0.0}
        for index in part.select(range(ITEMS - 10, ITEMS)):
            loss = self.loss(model, self.collate([index]))
            sums = {"loss": sums["loss"] + float(loss.total), "tokens": sums["tokens"] + float(loss.count)}
        return sums

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"loss": sums["loss"] / sums["tokens"]}

    def save(self, folder: Path) -> None:
        (folder / "words.json").write_text(json.dumps(list(range(WORDS))))


def make_toy_config(folder: Path, **overrides: object) -> ToyConfig:
    """Return the toy's settings, changed by `training__stop__steps=3` and the like."""
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    return configure(ToyConfig(), None, dotted | {"training.folder": str(folder)})


def collect_events(folder: Path, *, resume: bool = False, **overrides: object) -> list[Event]:
    """Run a whole training in this process and return its events."""
    config = make_toy_config(folder, **overrides)
    return list(train(Toy(config), config, resume=folder if resume else None))


def read_contents(folder: Path) -> dict[str, Any]:
    """Return everything in a run folder that must not depend on interruptions: all but what a clock says."""
    found: dict[str, Any] = {"threads": json.loads((folder / "versions.json").read_text())["threads"]}  # bits need them
    found["weights"] = (folder / "weights.safetensors").read_bytes()
    for path in find_checkpoints(folder):
        progress = json.loads((path / "state.json").read_text())["progress"]
        progress["window"].pop("seconds")
        found[path.name] = (path / "weights.safetensors").read_bytes(), progress
    found["optimizer"] = (find_checkpoints(folder)[-1] / "optimizer.safetensors").read_bytes()
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    found["metrics"] = [{name: line[name] for name in line if name != "seconds"} for line in lines]
    return found


def run(folder: Path, overrides: dict[str, object], resume: bool, die_at: int, fail_at: int = -1) -> None:
    torch.set_num_threads(1)
    config = configure(ToyConfig(), None, overrides | {"training.folder": str(folder)})
    first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
    rank = int(os.environ.get("RANK", "0"))
    last_rank = rank == int(os.environ.get("WORLD_SIZE", "1")) - 1
    for event in train(Toy(config), config, resume=folder if resume else None):
        if rank == 0:
            print(json.dumps(event_to_json(event)), flush=True)
        if isinstance(event, Stepped) and last_rank and first:
            if event.step >= die_at >= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if event.step >= fail_at >= 0:
                raise RegardError(f"toy: got an error in process {rank}, expected none; fix: none")


def run_and_kill(folder: Path, overrides: dict[str, object], delays: list[float]) -> None:
    """Start or resume the run in a child and kill it, once for each delay; the last child may finish."""
    kills = 0
    for delay in [*delays, None]:
        child = os.fork()  # a fresh process without three seconds of imports
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            run(folder, overrides, (folder / "versions.json").exists(), -1)
            os._exit(0)
        if delay is not None:
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
        kills += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    print(json.dumps({"event": "killed", "times": kills}), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--die-at", type=int, default=-1)
    parser.add_argument("--fail-at", type=int, default=-1)
    parser.add_argument("--kill-after", type=float, nargs="*", help="seconds until each kill -9")
    given = parser.parse_args()
    overrides = dict(item.split("=", 1) for item in given.overrides)
    arguments = (given.folder, overrides, given.resume, given.die_at, given.fail_at)
    try:
        if given.kill_after:
            run_and_kill(given.folder, overrides, given.kill_after)
        elif given.processes > 1:
            launch(run, *arguments, processes=given.processes, restarts=given.restarts)
        else:
            run(*arguments)
    except RegardError as error:
        print(json.dumps({"event": "error", "text": str(error)}), flush=True)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
