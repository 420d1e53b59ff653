"""One step: the gradient of the mean loss over all tokens of all its batches and processes, then AdamW."""

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from regard.errors import format_message, wrong
from regard.training.progress import DivergedError, Progress, StepResult, seed_generator
from regard.training.session import Session
from regard.training.tensors import gather_tensor, get_local_shard


def take_step(
    session: Session, batches: Sequence[Any], progress: Progress, rate: float, flags: tuple[bool, bool, bool]
) -> StepResult:
    """Take one step. `flags`, whether to stop, a save is overdue or time is up, are shared by all processes.

    The gradients of sums are added up and divided by the tokens at the end: a short batch weighs less than a
    long one, and neither accumulation nor the number of processes changes the result.
    """
    start, runtime, optimizer = time.perf_counter(), session.runtime, session.optimizer
    seed_generator(session.settings.seed, progress.step, runtime.share.rank)
    numbers = select_batches(session, batches, progress)
    loss, tokens = 0.0, 0
    for index in numbers:
        with runtime.sync_gradients(session.wrapped, last=index == numbers[-1]):
            total, count = session.wrapped(runtime.move_to_device(batches[index]))
            total.backward()
        loss, tokens = loss + float(total.detach()), tokens + int(count)
    if runtime.is_distributed:
        check_gradients(session.model)
    loss, all_tokens, *shared = runtime.sum_values([loss, float(tokens), *map(float, flags)])
    # Wrappers average over the processes what should be a sum.
    factor = runtime.share.world / max(1.0, all_tokens)
    norm = scale_gradients(session.model.parameters(), factor, session.settings.optimizer.clip)
    check_finite(progress.step + 1, loss, norm, rate)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad()
    seconds = time.perf_counter() - start
    return StepResult(len(numbers), loss, int(all_tokens), norm, rate, seconds, *(flag > 0 for flag in shared))


def select_batches(session: Session, batches: Sequence[Any], progress: Progress) -> range:
    """Return which batches of the epoch belong to this step: fewer than wanted at its end."""
    if progress.batch >= len(batches):  # also if an epoch is empty
        got = f"{len(batches)} batches in epoch {progress.epoch}"
        fix = "bring back the data and settings with which the run began"
        raise wrong("data", got, f"more than {progress.batch}, as when it was saved", fix)
    return range(progress.batch, min(progress.batch + session.settings.optimizer.accumulate, len(batches)))


def check_gradients(model: nn.Module) -> None:
    """Raise if processes would wait in vain for the gradient of a parameter that took no part."""
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.grad is None:
            fix = "freeze it with requires_grad_(False), or train in one process"
            raise wrong("model", f"no gradient for {name}", "one for every parameter", fix)


def scale_gradients(parameters: Iterable[nn.Parameter], factor: float, clip: float | None) -> float:
    """Multiply the gradients by `factor` and, if they are then too long, down to `clip`; return the norm."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return 0.0
    norm = float(gather_tensor(torch.nn.utils.get_total_norm(gradients))) * factor
    if clip is not None and norm > clip:
        factor *= clip / norm
    torch._foreach_mul_([get_local_shard(gradient) for gradient in gradients], factor)
    return norm


def check_finite(step: int, loss: float, norm: float, rate: float) -> None:
    """Raise before a step that would spoil the weights."""
    for name, value in (("loss", loss), ("gradient", norm)):
        if not math.isfinite(value):
            fix = f"lower the rate ({rate:.2g} now) or clip more; the last checkpoint is from before this"
            raise DivergedError(format_message(name, f"{value} at step {step}", "a finite number", fix))
