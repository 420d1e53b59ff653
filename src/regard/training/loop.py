"""The loop: a generator of events. Whoever reads them sets the pace, and may stop reading at any time."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.training.evaluation import measured
from regard.training.events import Evaluated, Event, Finished, Noted, Reason, Saved, Started, Stepped, record
from regard.training.folder import how_to_go_on
from regard.training.interrupt import listening
from regard.training.progress import Progress, Taken, Window, judged, moved
from regard.training.runtime import joined, restarted
from regard.training.schedule import rate_at
from regard.training.session import Session, prepared, save
from regard.training.settings import RunConfig, Training
from regard.training.step import advance
from regard.training.task import Part, Task


def train(
    task: Task[Any],
    config: RunConfig,
    *,
    resume: Path | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Trains `task` as `config.training` says, from the beginning or from the last checkpoint of `resume`.

    Killed at any moment and resumed, a run ends with the same bits on a CPU as one that was never killed.
    Ctrl-C, SIGTERM or a true `stop()` end it at the next step, with everything saved.
    """
    settings = config.training
    with joined(settings) as runtime, listening(patient=runtime.several) as interrupt:
        if resume is None and restarted() and (settings.folder / "versions.json").is_file():
            resume = settings.folder
        session, progress, notes = prepared(task, config, runtime, resume)
        steps = planned_steps(task, settings, runtime.part)
        parameters = sum(parameter.numel() for parameter in session.model.parameters())
        yield Started(session.run, progress.step, progress.epoch, steps, parameters, runtime.part.world)
        yield from map(Noted, notes)
        try:
            for event in stepping(session, progress, steps, lambda: interrupt.asked or stop()):
                if session.journal and isinstance(event, Stepped | Evaluated):
                    session.journal.append(record(event))
                yield event
        finally:
            if session.journal:
                session.journal.close()


def planned_steps(task: Task[Any], settings: Training, part: Part) -> int:
    """Where the run ends if nothing ends it before. Epochs may differ by a batch; the first one counts."""
    wanted = [settings.stop.steps] if settings.stop.steps else []
    if settings.stop.epochs:
        batches = len(task.epoch(0, part))
        wanted.append(settings.stop.epochs * math.ceil(batches / settings.optimizer.accumulate))
    return min(wanted)


def stepping(session: Session, progress: Progress, steps: int, asked: Callable[[], bool]) -> Iterator[Event]:
    """Steps until there is a reason to end. At each: log, evaluate, save, as due, in this order."""
    saved, every = time.monotonic(), session.settings.every
    batches: Sequence[Any] = ()
    reason = ending(session, progress)
    while reason is None:
        if not batches:
            batches = session.task.epoch(progress.epoch, session.runtime.part)
        optimizer = session.settings.optimizer
        rate = rate_at(progress.step + 1, optimizer.rate, session.settings.schedule, steps)
        overdue = time.monotonic() - saved > 60 * every.minutes
        taken = advance(session, batches, progress, rate, (asked(), overdue))
        before, progress = progress.epoch, moved(progress, taken, len(batches))
        if progress.epoch != before:
            batches = ()
        reason = ending(session, progress)
        if progress.step % every.log == 0 or reason:
            yield stepped(progress, taken)
            progress = replace(progress, window=Window())
        evaluates = due(every.evaluate, progress, before) or reason is not None
        if evaluates:
            progress, evaluated = evaluate(session, progress)
            yield evaluated
            reason = ending(session, progress)
        saves = evaluates or (every.save is not None and progress.step % every.save == 0)
        if saves or taken.stop or taken.overdue:
            path = save(session, progress, due=saves)
            saved = time.monotonic()
            yield Saved(progress.step, path)
        reason = reason or ("interrupted" if taken.stop else None)
    yield Finished(reason, progress.step, progress.best, session.run, how_to_go_on(session.run))


def due(interval: int | None, progress: Progress, epoch_before: int) -> bool:
    """Whether an evaluation is due after this step: by the interval, or at the end of an epoch."""
    return progress.step % interval == 0 if interval else progress.epoch != epoch_before


def stepped(progress: Progress, taken: Taken) -> Stepped:
    window = progress.window
    loss = window.loss / max(1, window.tokens)
    return Stepped(progress.step, progress.epoch, loss, window.tokens, window.seconds, taken.rate, taken.norm)


def evaluate(session: Session, progress: Progress) -> tuple[Progress, Evaluated]:
    """Measures, and judges by the metric that decides."""
    goal = session.task.goal
    metrics = measured(session, progress.step)
    progress = judged(progress, metrics[goal.metric], goal)
    best = progress.metric is not None and progress.stale == 0
    return progress, Evaluated(progress.step, progress.epoch, metrics, best)


def ending(session: Session, progress: Progress) -> Reason | None:
    """Why the run is over, if it is."""
    stop, goal = session.settings.stop, session.task.goal
    if stop.target is not None and progress.best is not None and goal.reached(progress.best, stop.target):
        return "target"
    if stop.patience is not None and progress.stale >= stop.patience:
        return "patience"
    if stop.steps is not None and progress.step >= stop.steps:
        return "steps"
    if stop.epochs is not None and progress.epoch >= stop.epochs:
        return "epochs"
    return None
