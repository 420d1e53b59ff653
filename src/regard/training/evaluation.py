"""How good the model is on held-out data, measured by all processes together."""

from collections.abc import Mapping
from typing import Any

from torch import nn, no_grad

from regard.errors import wrong
from regard.training.progress import reseed
from regard.training.session import Session
from regard.training.task import Part, Task
from regard.training.tensors import distinct, restore, unsharded

EMPTY = (ZeroDivisionError, KeyError)  # what comes of sums of nothing
ONE = Part(0, 2**31)  # a share so small that it has one item, if there is any


def measured(session: Session, step: int) -> dict[str, float]:
    """The task's metrics at this step. What is drawn at random is a function of the step alone."""
    sums = session.runtime.merged(sums_of(session, step, session.runtime.part))
    try:
        return metrics_of(session.task, sums)
    except EMPTY as error:
        fix = "give it validation data, or settings under which some of it can be used"
        got = f"nothing that could be measured ({type(error).__name__})"
        raise wrong("validation", got, "held-out items", fix) from error


def rehearse(session: Session, step: int) -> None:
    """Evaluates once on one item before the first step: what is missing should be told now and not in an hour."""
    try:
        metrics_of(session.task, sums_of(session, step, ONE))
        usable = 1.0
    except EMPTY:
        usable = 0.0  # that item is not one that can be used; only all of them tell
    if session.runtime.total([usable])[0] < session.runtime.part.world:
        measured(session, step)


def sums_of(session: Session, step: int, part: Part) -> Mapping[str, float]:
    """What the task measures of a share of the held-out data, with the model as it is."""
    model = whole(session)
    model.eval()
    reseed(session.settings.seed, step, session.runtime.part.rank)
    with no_grad():
        sums = session.task.measure(model, part)
    model.train()
    return sums


def metrics_of(task: Task[Any], sums: Mapping[str, float]) -> dict[str, float]:
    """The metrics, if there are any and the one that decides is among them."""
    metrics = task.metrics(sums)
    if not metrics:
        raise KeyError(task.goal.metric)
    if task.goal.metric not in metrics:
        names = ", ".join(sorted(metrics))
        raise wrong("goal", task.goal.metric, f"one of {names}", "name a metric that the task returns")
    return metrics


def whole(session: Session) -> nn.Module:
    """The model as one piece: a search takes as many steps as it likes, shards must move together."""
    if not session.runtime.sharded:
        return session.model
    full = {name: unsharded(tensor) for name, tensor in distinct(session.model).items()}
    model = session.task.model().to(session.runtime.device)
    restore(model, full, session.run)
    return model
