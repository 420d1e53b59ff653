"""How good the model is on held-out data, measured by all processes together."""

from torch import nn, no_grad

from regard.errors import wrong
from regard.training.progress import reseed
from regard.training.session import Session
from regard.training.tensors import distinct, restore, unsharded


def measured(session: Session, step: int) -> dict[str, float]:
    """The task's metrics at this step. What is drawn at random is a function of the step alone."""
    task, runtime = session.task, session.runtime
    model = whole(session)
    model.eval()
    reseed(session.settings.seed, step, runtime.part.rank)
    with no_grad():
        sums = task.measure(model, runtime.part)
    model.train()
    metrics = task.metrics(runtime.merged(sums))
    if task.goal.metric not in metrics:
        names = ", ".join(sorted(metrics)) or "nothing"
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
