"""Show a run in a terminal, as a bar with loss, speed and time left, or in a log, as a line now and then."""

import time
from collections.abc import Callable, Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from regard.training.events import Evaluated, Event, Finished, Noted, Started
from regard.training.progress import Progress as RunProgress

REASONS = {
    "steps": "all steps taken",
    "epochs": "all epochs done",
    "patience": "no better for a while",
    "target": "good enough",
    "minutes": "time is up",
    "interrupted": "interrupted, everything saved",
}
FIRST_PAUSE, LONGEST_PAUSE = 15.0, 300.0  # seconds between two lines of a log: each pause is twice the last


class RemainingTime:
    """Estimates the time that is left. The first step is not counted: it may compile kernels."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, minutes: float | None = None) -> None:
        self.clock, self.minutes, self.begun = clock, minutes, clock()
        self.first: tuple[int, float] | None = None  # a step, and when it was done

    def estimate(self, step: int, steps: int | None) -> float | None:
        """Return the seconds that are left after a step of so many; None if nothing is known yet."""
        now = self.clock()
        known = [] if self.minutes is None else [60 * self.minutes - (now - self.begun)]
        if self.first is None or self.first[0] > step:
            self.first = step, now
        elif steps is not None and step > self.first[0]:
            known.append((steps - step) * (now - self.first[1]) / (step - self.first[0]))
        return max(0.0, min(known)) if known else None


class TrainingDisplay:
    """Shows a run on a console: `advance` is called after every step, `show` is given its events."""

    def __init__(
        self, console: Console, clock: Callable[[], float] = time.monotonic, minutes: float | None = None
    ) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
        )
        self.bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.bar.add_task("training", total=None, figures="")
        self.console, self.clock = console, clock
        self.remaining, self.steps = RemainingTime(clock, minutes), 0
        self.written, self.pause = clock(), FIRST_PAUSE

    def advance(self, progress: RunProgress) -> None:
        """Move the bar; without a terminal, write a line if there was none for a while."""
        window, left = progress.window, self.remaining.estimate(progress.step, self.steps or None)
        loss, speed = window.loss / max(1, window.tokens), window.tokens / max(window.seconds, 1e-9)
        figures = [f"loss {loss:.4g}", f"{speed:,.0f} tokens/s"]
        if left is not None:
            figures.append(f"{format_duration(left)} left")
        self.bar.update(self.task, completed=progress.step, figures=", ".join(figures))
        if not self.console.is_terminal and self.clock() - self.written >= self.pause:
            whole = f" of {self.steps}" if self.steps else ""
            self.write(f"step {progress.step}{whole}, epoch {progress.epoch}: {', '.join(figures)}")
            self.pause = min(2 * self.pause, LONGEST_PAUSE)

    def show(self, events: Iterable[Event]) -> Iterator[Event]:
        """Show each event and yield it."""
        with self.bar:
            for event in events:
                if isinstance(event, Started):
                    self.steps = event.steps or 0
                    self.bar.update(self.task, total=event.steps, completed=event.step)
                line = format_event(event)
                if line:
                    self.write(line)
                yield event

    def write(self, line: str) -> None:
        """Write a line that stays."""
        self.console.print(line, markup=False, highlight=False)
        self.console.file.flush()  # a log that is watched grows line by line
        self.written = self.clock()


def format_duration(seconds: float) -> str:
    """Return a duration in the two largest units that it has.

    >>> format_duration(42.3), format_duration(192.0), format_duration(5e3), format_duration(2e5)
    ('42 s', '3 min 12 s', '1 h 23 min', '2 d 7 h')
    """
    whole = round(seconds)
    for size, unit, part, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {smaller}"
    return f"{whole} s"


def format_event(event: Event) -> str | None:
    """Return the line of an event that stays on the screen; None if it has none.

    >>> format_event(Evaluated(8, 1, {"bleu": 12.5}, True))
    'step 8, epoch 1: bleu 12.5, the best so far'
    """
    match event:
        case Started():
            many = f" in {event.processes} processes" if event.processes > 1 else ""
            start = f"from step {event.step} " if event.step else ""
            noun = "parameter" if event.parameters == 1 else "parameters"
            return f"{event.folder}: {start}to step {event.steps}, {event.parameters:,} {noun}{many}"
        case Noted():
            return event.text
        case Evaluated():
            figures = ", ".join(f"{name} {value:.4g}" for name, value in event.metrics.items())
            best = ", the best so far" if event.best else ""
            return f"step {event.step}, epoch {event.epoch}: {figures}{best}"
        case Finished():
            go_on = f"; to go on: {event.go_on}" if event.reason in ("interrupted", "minutes") else ""
            return f"{REASONS[event.reason]} at step {event.step}{go_on}"
        case _:
            return None
