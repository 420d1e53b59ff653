"""Write events as TensorBoard curves (extra `tensorboard`)."""

from collections.abc import Iterable, Iterator

from regard.errors import import_package
from regard.training.events import Evaluated, Event, Started, Stepped


def write_tensorboard(events: Iterable[Event]) -> Iterator[Event]:
    """Write the numbers of the events to `tensorboard/` in the run folder, and yield the events.

    A resumed run hides what an earlier process wrote past the checkpoint.
    """
    name, writer = "tensorboard", None
    package = import_package("torch.utils.tensorboard", name, package=name, otherwise=", or leave it off")
    try:
        for event in events:
            if isinstance(event, Started):
                writer = package.SummaryWriter(str(event.folder / name), purge_step=event.step + 1)
            if writer:
                for name, value, step in extract_scalars(event):
                    writer.add_scalar(name, value, step)
            yield event
    finally:
        if writer:
            writer.close()


def extract_scalars(event: Event) -> Iterator[tuple[str, float, int]]:
    """Yield the numbers of an event, with the names of their curves."""
    if isinstance(event, Stepped):
        for name in ("loss", "rate", "norm", "tokens_per_second"):
            yield f"train/{name}", getattr(event, name), event.step
    if isinstance(event, Evaluated):
        yield from ((f"valid/{name}", value, event.step) for name, value in event.metrics.items())
