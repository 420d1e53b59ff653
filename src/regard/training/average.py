"""The mean of several checkpoints' weights, which often translates better than any one of them."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from regard.errors import wrong
from regard.training.checkpoint import find_damage, rank_checkpoints, read_states, read_tensors
from regard.training.lock import hold_lock
from regard.training.run_folder import read_versions
from regard.training.storage import replace_file, wrap_storage_errors
from regard.training.task import Goal
from regard.training.tensors import find_mismatch, to_safetensors


def average_checkpoints(run: Path, count: int, by: Literal["last", "best"], goal: Goal, output: Path) -> list[Path]:
    """Write the mean of the weights of the last or best `count` checkpoints; returns which they were.

    Damaged ones are left out. Nobody else may work on the run meanwhile: it might delete what is read.
    """
    read_versions(run)
    with hold_lock(run) if os.access(run, os.W_OK) else nullcontext():
        damaged = find_damage(run)
        due = [path for path, state in reversed(read_states(run).items()) if state["due"]]
        found = [path for path in (rank_checkpoints(run, goal) if by == "best" else due) if path not in damaged]
        if not 1 <= count <= len(found):
            fix = f"average fewer, or train with training.keep={max(1, count)}"
            raise wrong("count", count, f"1 to {len(found)}, the {by} checkpoints that {run} has kept", fix)
        weights = average_weights(found[:count])
        with wrap_storage_errors("average", output):
            replace_file(output, to_safetensors(weights))
        return found[:count]


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    r"""$\frac{1}{n} \sum_i w_i$ in double precision; what is not a floating-point number is the first's."""
    first = read_tensors(paths[0], "weights")
    sums = {name: tensor.double() for name, tensor in first.items() if tensor.is_floating_point()}
    for path in paths[1:]:
        other = read_tensors(path, "weights")
        problem = find_mismatch(first, other)
        if problem:
            raise wrong("average", f"{path} with {problem}", f"the same tensors as {paths[0]}", "leave it out")
        for name, total in sums.items():
            total += other[name].double()
    with torch.no_grad():
        means = {name: (total / len(paths)).to(first[name].dtype) for name, total in sums.items()}
    return first | means
