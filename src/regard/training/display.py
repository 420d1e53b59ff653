"""Show events in a terminal: a bar with loss, tokens a second and time left, and lines that stay."""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from regard.training.events import Evaluated, Event, Finished, Noted, Started, Stepped

REASONS = {
    "steps": "all steps taken",
    "epochs": "all epochs done",
    "patience": "no better for a while",
    "target": "good enough",
    "interrupted": "interrupted, everything saved",
}


def display_events(events: Iterable[Event], console: Console) -> Iterator[Event]:
    """Show each event and yield it. Without a terminal there is no bar, only lines."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("training", total=None, figures="")
        for event in events:
            show_event(event, bar, task)
            yield event


def show_event(event: Event, bar: Progress, task: TaskID) -> None:
    """Update the bar and print the line of an event."""
    match event:
        case Started():
            bar.update(task, total=event.steps, completed=event.step)
        case Stepped():
            figures = f"loss {event.loss:.4g}  {event.tokens_per_second:,.0f} tokens/s"
            bar.update(task, completed=event.step, figures=figures)
    line = format_event(event)
    if line:
        bar.console.print(line, markup=False, highlight=False)


def format_event(event: Event) -> str | None:
    """Return the line of an event that stays on the screen; None if it has none.

    >>> format_event(Evaluated(8, 1, {"bleu": 12.5}, True))
    'step 8, epoch 1: bleu 12.5, the best so far'
    """
    match event:
        case Started():
            many = f" in {event.processes} processes" if event.processes > 1 else ""
            start = f"from step {event.step} " if event.step else ""
            return f"{event.folder}: {start}to step {event.steps}, {event.parameters:,} parameters{many}"
        case Noted():
            return event.text
        case Evaluated():
            figures = ", ".join(f"{name} {value:.4g}" for name, value in event.metrics.items())
            best = ", the best so far" if event.best else ""
            return f"step {event.step}, epoch {event.epoch}: {figures}{best}"
        case Finished():
            go_on = f"; to go on: {event.go_on}" if event.reason == "interrupted" else ""
            return f"{REASONS[event.reason]} at step {event.step}{go_on}"
        case _:
            return None
