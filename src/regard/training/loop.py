"""The loop: a generator of events. Whoever reads them sets the pace, and may stop reading at any time."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.training.evaluation import measured, rehearse
from regard.training.events import Evaluated, Event, Finished, Noted, Reason, Saved, Started, Stepped, record
from regard.training.folder import how_to_go_on
from regard.training.interrupt import listening
from regard.training.lock import Lock
from regard.training.progress import Progress, Taken, Window, judged, moved, tell_unmoved
from regard.training.runtime import joined, restarted
from regard.training.schedule import rate_at
from regard.training.session import Session, Standing, copy_buffers, prepared, rescue, save
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
    settings, lock = config.training, Lock()
    with joined(settings) as runtime, listening(patient=runtime.several) as interrupt, closing(lock):
        if resume is None and restarted() and (settings.folder / "versions.json").is_file():
            resume = settings.folder
        session, standing, notes = prepared(task, config, runtime, resume, lock)
        start = standing.progress
        steps = planned_steps(task, settings, runtime.part)
        parameters = sum(parameter.numel() for parameter in session.model.parameters())
        yield Started(session.run, start.step, start.epoch, steps, parameters, runtime.part.world)
        yield from map(Noted, [*notes, *tell_unmoved(start, task.goal)])
        try:
            for event in stepping(session, standing, steps, lambda: interrupt.asked or stop()):
                if session.journal and isinstance(event, Stepped | Evaluated):
                    session.journal.append(record(event))
                yield event
        except Exception as error:
            path = rescue(session, standing, error)
            if path:
                yield Saved(standing.progress.step, path)
                yield Noted(f"saved at step {standing.progress.step}; to go on: {how_to_go_on(session.run)}")
            raise
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


def stepping(session: Session, standing: Standing, steps: int, asked: Callable[[], bool]) -> Iterator[Event]:
    """Steps until there is a reason to end. At each: log, evaluate, save, as due, in this order."""
    saved, every = time.monotonic(), session.settings.every
    batches: Sequence[Any] = ()
    progress, taken = standing.progress, standing.taken
    reason = None if taken else ending(session, progress)
    begun = progress.evaluations
    if reason is None:
        rehearse(session, progress.step)
    while reason is None:
        if taken is None:  # otherwise an error came between a step and what follows it, which is made up for
            if not batches:
                batches = session.task.epoch(progress.epoch, session.runtime.part)
            standing.buffers = copy_buffers(session)
            rate = rate_at(progress.step + 1, session.settings.optimizer.rate, session.settings.schedule, steps)
            overdue = time.monotonic() - saved > 60 * every.minutes
            taken = advance(session, batches, progress, rate, (asked(), overdue))
            progress = moved(progress, taken, len(batches))
            stand(session, standing, progress, taken)
        if progress.batch == 0:
            batches = ()
        reason = ending(session, progress)
        if progress.step % every.log == 0 or reason:
            yield stepped(progress, taken)
            progress = replace(progress, window=Window())
        evaluates = due(every.evaluate, progress) or reason is not None
        if evaluates:
            progress, evaluated = evaluate(session, progress)
            yield evaluated
            reason = ending(session, progress)
        saves = evaluates or (every.save is not None and progress.step % every.save == 0)
        stand(session, standing, progress, None, due=saves)
        if saves or taken.stop or taken.overdue:
            path = save(session, progress, due=saves)
            saved, standing.saved = time.monotonic(), True
            yield Saved(progress.step, path)
        reason = reason or ("interrupted" if taken.stop else None)
        taken = None
    if progress.evaluations > begun:
        yield from map(Noted, tell_unmoved(progress, session.task.goal))
    yield Finished(reason, progress.step, progress.best, session.run, how_to_go_on(session.run))


def stand(session: Session, standing: Standing, progress: Progress, taken: Taken | None, *, due: bool = False) -> None:
    """Notes where the run stands, for the case that an error ends it."""
    standing.progress, standing.taken, standing.due, standing.saved = progress, taken, due, False
    standing.metrics_bytes = session.journal.size() if session.journal else 0
    standing.buffers = {}


def due(interval: int | None, progress: Progress) -> bool:
    """Whether an evaluation is due after this step: by the interval, or at the end of an epoch."""
    return progress.step % interval == 0 if interval else progress.batch == 0


def stepped(progress: Progress, taken: Taken) -> Stepped:
    window = progress.window
    loss = window.loss / max(1, window.tokens)
    return Stepped(progress.step, progress.epoch, loss, window.tokens, window.seconds, taken.rate, taken.norm)


def evaluate(session: Session, progress: Progress) -> tuple[Progress, Evaluated]:
    """Measures, and judges by the metric that decides."""
    metrics = measured(session, progress.step)
    progress, best = judged(progress, metrics, session.task.goal)
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
