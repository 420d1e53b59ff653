"""The training loop: a generator of events. Its caller sets the pace and may stop at any time."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.training.evaluation import check_evaluation, evaluate_model
from regard.training.events import Evaluated, Event, Finished, Noted, Saved, Started, Stepped, StopReason, event_to_json
from regard.training.interrupt import catch_signals
from regard.training.lock import Lock
from regard.training.plan import count_planned_steps
from regard.training.progress import (
    LogWindow,
    Progress,
    StepResult,
    advance_progress,
    note_constant_metric,
    update_best,
)
from regard.training.run_folder import format_resume_command
from regard.training.runtime import is_restarted, join_processes
from regard.training.schedule import compute_rate
from regard.training.session import RunState, Session, copy_buffers, prepare_session, save_after_error, save_checkpoint
from regard.training.settings import RunConfig, Training
from regard.training.step import take_step
from regard.training.task import Task


def train(
    task: Task[Any],
    config: RunConfig,
    *,
    resume: Path | None = None,
    stop: Callable[[], bool] = lambda: False,
    after_step: Callable[[Progress], None] = lambda progress: None,
) -> Iterator[Event]:
    """Train `task` as `config.training` says, from the beginning or from the last checkpoint of `resume`.

    Killed at any moment and resumed, a run ends with the same bits on a CPU as one that was never killed.
    Ctrl-C, SIGTERM or a true `stop()` end it at the next step, with everything saved. `after_step` is called after
    every step, also between events.
    """
    settings, lock = config.training, Lock()
    with join_processes(settings) as runtime, catch_signals(patient=runtime.is_distributed) as interrupt, closing(lock):
        if resume is None and is_restarted() and (settings.folder / "versions.json").is_file():
            resume = settings.folder
        session, standing, notes = prepare_session(task, config, runtime, resume, lock)
        start = standing.progress
        steps = count_planned_steps(task, settings, runtime.share)
        parameters = sum(parameter.numel() for parameter in session.model.parameters())
        yield Started(session.run, start.step, start.epoch, steps, parameters, runtime.share.world)
        yield from map(Noted, [*notes, *note_constant_metric(start, task.goal)])
        try:
            for event in run_steps(session, standing, steps, lambda: interrupt.asked or stop(), after_step):
                if session.metrics_log and isinstance(event, Stepped | Evaluated):
                    session.metrics_log.append(event_to_json(event))
                yield event
        except Exception as error:
            path = save_after_error(session, standing, error)
            if path:
                yield Saved(standing.progress.step, path)
                yield Noted(f"saved at step {standing.progress.step}; to go on: {format_resume_command(session.run)}")
            raise
        finally:
            if session.metrics_log:
                session.metrics_log.close()


def run_steps(
    session: Session, standing: RunState, steps: int, asked: Callable[[], bool], after_step: Callable[[Progress], None]
) -> Iterator[Event]:
    """Take steps until there is a reason to end; after each log, evaluate and save if that is due, in this order."""
    saved, every, deadline = time.monotonic(), session.settings.every, find_deadline(session.settings)
    batches: Sequence[Any] = ()
    progress, taken, begun = standing.progress, standing.pending_step, standing.progress.evaluations
    reason = None if taken else find_stop_reason(session, progress)
    if reason is None:
        check_evaluation(session, progress.step)
    while reason is None:
        if taken is None:  # otherwise an error ended the run between this step and what follows it here
            batches = batches or session.task.epoch(progress.epoch, session.runtime.share)
            flags = asked(), time.monotonic() - saved > 60 * every.minutes, time.monotonic() > deadline
            taken, progress = take_next_step(session, standing, batches, steps, flags)
            after_step(progress)
        batches = batches if progress.batch else ()
        reason = find_stop_reason(session, progress, taken)
        if progress.step % every.log == 0 or reason:
            yield summarize_steps(progress, taken)
            progress = replace(progress, window=LogWindow())
        evaluates = is_evaluation_due(every.evaluate, progress) or reason is not None
        if evaluates:
            progress, evaluated = evaluate(session, progress)
            yield evaluated
            reason = find_stop_reason(session, progress, taken)
        saves = evaluates or (every.save is not None and progress.step % every.save == 0)
        update_run_state(session, standing, progress, None, due=saves)
        if saves or taken.stop or taken.overdue:
            path = save_checkpoint(session, progress, due=saves)
            saved, standing.saved = time.monotonic(), True
            yield Saved(progress.step, path)
        reason = reason or ("interrupted" if taken.stop else None)
        taken = None
    if progress.evaluations > begun:
        yield from map(Noted, note_constant_metric(progress, session.task.goal))
    yield Finished(reason, progress.step, progress.best, session.run, format_resume_command(session.run))


def take_next_step(
    session: Session, standing: RunState, batches: Sequence[Any], steps: int, flags: tuple[bool, bool, bool]
) -> tuple[StepResult, Progress]:
    """Take the step that comes next; the state of the run then says what an error would lose."""
    standing.buffers, progress = copy_buffers(session), standing.progress
    rate = compute_rate(progress.step + 1, session.settings.optimizer.rate, session.settings.schedule, steps)
    taken = take_step(session, batches, progress, rate, flags)
    progress = advance_progress(progress, taken, len(batches))
    update_run_state(session, standing, progress, taken)
    return taken, progress


def update_run_state(
    session: Session, standing: RunState, progress: Progress, taken: StepResult | None, *, due: bool = False
) -> None:
    """Update what is saved if an error ends the run."""
    standing.progress, standing.pending_step, standing.due, standing.saved = progress, taken, due, False
    standing.metrics_bytes = session.metrics_log.size() if session.metrics_log else 0
    standing.buffers = {}


def is_evaluation_due(interval: int | None, progress: Progress) -> bool:
    """Return whether an evaluation is due after this step: by the interval, or at the end of an epoch."""
    return progress.step % interval == 0 if interval else progress.batch == 0


def summarize_steps(progress: Progress, taken: StepResult) -> Stepped:
    """Return the event that sums up the steps since the last one."""
    window = progress.window
    loss = window.loss / max(1, window.tokens)
    return Stepped(progress.step, progress.epoch, loss, window.tokens, window.seconds, taken.rate, taken.norm)


def evaluate(session: Session, progress: Progress) -> tuple[Progress, Evaluated]:
    """Evaluate the model and compare the metric of the goal with the best so far."""
    metrics = evaluate_model(session, progress.step)
    progress, best = update_best(progress, metrics, session.task.goal)
    return progress, Evaluated(progress.step, progress.epoch, metrics, best)


def find_deadline(settings: Training) -> float:
    """Return when the minutes of this training are over, on the clock of `time.monotonic`."""
    return math.inf if settings.stop.minutes is None else time.monotonic() + 60 * settings.stop.minutes


def find_stop_reason(session: Session, progress: Progress, taken: StepResult | None = None) -> StopReason | None:
    """Return why the run is over; None if it is not."""
    stop, goal = session.settings.stop, session.task.goal
    if stop.target is not None and progress.best is not None and goal.is_reached(progress.best, stop.target):
        return "target"
    if stop.patience is not None and progress.stale >= stop.patience:
        return "patience"
    if stop.steps is not None and progress.step >= stop.steps:
        return "steps"
    if stop.epochs is not None and progress.epoch >= stop.epochs:
        return "epochs"
    return "minutes" if taken is not None and taken.expired else None
