"""Average the weights of several checkpoints, which often translate better than any one of them."""

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
from regard.training.run_folder import format_resume_command, read_versions
from regard.training.storage import replace_file, wrap_storage_errors
from regard.training.task import Goal
from regard.training.tensors import find_mismatch, to_safetensors


def average_checkpoints(run: Path, count: int, by: Literal["last", "best"], goal: Goal, output: Path) -> list[Path]:
    """Write the mean weights of the last or best `count` checkpoints and return the paths of these.

    Damaged ones are left out. The run is locked, because a training might delete what is read.
    """
    read_versions(run)
    with hold_lock(run) if os.access(run, os.W_OK) else nullcontext():
        damaged = find_damage(run)
        due = [path for path, state in reversed(read_states(run).items()) if state["due"]]
        paths = [path for path in (rank_checkpoints(run, goal) if by == "best" else due) if path not in damaged]
        if not paths:
            fix = f"train it further: {format_resume_command(run)}"
            raise wrong("run", f"{run} without a whole checkpoint", "some to average", fix)
        if not 1 <= count <= len(paths):
            fix = f"average fewer, or train with training.keep={max(1, count)}"
            raise wrong("count", count, f"1 to {len(paths)}, the {by} checkpoints that {run} has kept", fix)
        weights = average_weights(paths[:count])
        with wrap_storage_errors("average", output):
            replace_file(output, to_safetensors(weights))
        return paths[:count]


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    r"""Return $\frac{1}{n} \sum_i w_i$, computed in double precision; integer tensors are those of the first path."""
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
