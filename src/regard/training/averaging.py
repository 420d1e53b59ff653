"""The mean of several checkpoints' weights, which often translates better than any one of them."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from regard.errors import wrong
from regard.training.checkpoint import best_first, find_damage, read_tensors, readable_states
from regard.training.folder import recorded_versions
from regard.training.lock import holding
from regard.training.storage import replace, storing
from regard.training.task import Goal
from regard.training.tensors import mismatch, pack


def average(run: Path, count: int, by: Literal["last", "best"], goal: Goal, output: Path) -> list[Path]:
    """Writes the mean of the weights of the last or best `count` checkpoints; returns which they were.

    Damaged ones are left out. Nobody else may work on the run meanwhile: it might delete what is read.
    """
    recorded_versions(run)
    with holding(run) if os.access(run, os.W_OK) else nullcontext():
        damaged = find_damage(run)
        due = [path for path, state in reversed(readable_states(run).items()) if state["due"]]
        found = [path for path in (best_first(run, goal) if by == "best" else due) if path not in damaged]
        if not 1 <= count <= len(found):
            fix = f"average fewer, or train with training.keep={max(1, count)}"
            raise wrong("count", count, f"1 to {len(found)}, the {by} checkpoints that {run} has kept", fix)
        weights = mean(found[:count])
        with storing("average", output):
            replace(output, pack(weights))
        return found[:count]


def mean(paths: Sequence[Path]) -> dict[str, Tensor]:
    r"""$\frac{1}{n} \sum_i w_i$ in double precision; what is not a floating-point number is the first's."""
    first = read_tensors(paths[0], "weights")
    sums = {name: tensor.double() for name, tensor in first.items() if tensor.is_floating_point()}
    for path in paths[1:]:
        other = read_tensors(path, "weights")
        problem = mismatch(first, other)
        if problem:
            raise wrong("average", f"{path} with {problem}", f"the same tensors as {paths[0]}", "leave it out")
        for name, total in sums.items():
            total += other[name].double()
    with torch.no_grad():
        means = {name: (total / len(paths)).to(first[name].dtype) for name, total in sums.items()}
    return first | means
