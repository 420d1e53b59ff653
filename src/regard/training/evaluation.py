"""Evaluate the model on held-out data, by all processes together."""

from collections.abc import Mapping
from typing import Any

from torch import nn, no_grad

from regard.errors import wrong
from regard.training.progress import seed_generator
from regard.training.session import Session
from regard.training.task import DataShare, Task
from regard.training.tensors import collect_tensors, gather_tensor, restore_weights

EMPTY_ERRORS = (ZeroDivisionError, KeyError)  # what comes of sums of nothing
ONE_ITEM = DataShare(0, 2**31)  # a share so small that it has one item, if there is any


def evaluate_model(session: Session, step: int) -> dict[str, float]:
    """Return the task's metrics at this step. Random numbers are a function of the step alone."""
    sums = session.runtime.merge_sums(measure_share(session, step, session.runtime.share))
    try:
        return compute_metrics(session.task, sums)
    except EMPTY_ERRORS as error:
        fix = "give it validation data, or settings under which some of it can be used"
        got = f"nothing that could be measured ({type(error).__name__})"
        raise wrong("validation", got, "held-out items", fix) from error


def check_evaluation(session: Session, step: int) -> None:
    """Evaluate one item before the first step, so that missing data is reported now and not in an hour."""
    try:
        compute_metrics(session.task, measure_share(session, step, ONE_ITEM))
        usable = 1.0
    except EMPTY_ERRORS:
        usable = 0.0  # the first item cannot be used; others may
    if session.runtime.sum_values([usable])[0] < session.runtime.share.world:
        evaluate_model(session, step)


def measure_share(session: Session, step: int, part: DataShare) -> Mapping[str, float]:
    """Return the sums that the task measures on a share of the held-out data."""
    model = gather_model(session)
    model.eval()
    seed_generator(session.settings.seed, step, session.runtime.share.rank)
    with no_grad():
        sums = session.task.measure(model, part)
    model.train()
    return sums


def compute_metrics(task: Task[Any], sums: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics; raise if there are none or that of the goal is not among them."""
    metrics = task.metrics(sums)
    if not metrics:
        raise KeyError(task.goal.metric)
    if task.goal.metric not in metrics:
        names = ", ".join(sorted(metrics))
        raise wrong("goal", task.goal.metric, f"one of {names}", "name a metric that the task returns")
    return metrics


def gather_model(session: Session) -> nn.Module:
    """Return the whole model: processes search for different numbers of steps, which shards could not follow."""
    if not session.runtime.is_sharded:
        return session.model
    full = {name: gather_tensor(tensor) for name, tensor in collect_tensors(session.model).items()}
    model = session.task.model().to(session.runtime.device)
    restore_weights(model, full, session.run)
    return model
