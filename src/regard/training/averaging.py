"""The mean of several checkpoints' weights, which often translates better than any one of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from regard.errors import wrong
from regard.training.checkpoint import best_first, checkpoints, read_state, read_tensors
from regard.training.storage import replace, storing
from regard.training.task import Goal
from regard.training.tensors import mismatch, pack


def average(run: Path, count: int, by: Literal["last", "best"], goal: Goal, output: Path) -> list[Path]:
    """Writes the mean of the weights of the last or best `count` checkpoints; returns which they were."""
    due = [path for path in reversed(checkpoints(run)) if read_state(path)["due"]]
    found = best_first(run, goal) if by == "best" else due
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
