"""The plan of a run: how many steps it takes, as the size of its data asks, and about how long that is."""

import math
import time
from dataclasses import replace
from typing import Any

from regard.training.memory import build_within_memory
from regard.training.runtime import choose_device
from regard.training.settings import RunConfig, Training
from regard.training.task import DataShare, Task

WARMUP = 10  # a warm-up takes at most this fraction of the steps
EVALUATIONS = 20  # in a run whose length follows from `stop.least`


def count_planned_steps(task: Task[Any], settings: Training, part: DataShare) -> int:
    """Return the step at which the run ends unless it ends early. All epochs are taken to be as long as the first."""
    limits = [settings.stop.steps] if settings.stop.steps else []
    if settings.stop.epochs:
        batches = len(task.epoch(0, part))
        limits.append(settings.stop.epochs * math.ceil(batches / settings.optimizer.accumulate))
    return min(limits)


def fit_training(settings: Training, task: Task[Any]) -> Training:
    """Return settings for the size of the data: `stop.least` steps if the epochs have fewer.

    The epochs of a preset are meant for thousands of items. A few items in a batch or two would be trained on for fewer
    steps than the warm-up takes; the warm-up and the evaluations follow the number of steps.
    """
    least, planned = settings.stop.least, count_planned_steps(task, settings, DataShare())
    settings = replace(settings, stop=replace(settings.stop, least=None))
    if least is None or planned >= least:
        return settings if planned > settings.schedule.warmup else shorten_warmup(settings, planned)
    every = replace(settings.every, evaluate=settings.every.evaluate or max(1, least // EVALUATIONS))
    stop = replace(settings.stop, steps=least, epochs=None)
    return shorten_warmup(replace(settings, stop=stop, every=every), least)


def shorten_warmup(settings: Training, steps: int) -> Training:
    """Return settings whose warm-up takes at most a tenth of the steps, unless somebody has named it."""
    warmup = settings.schedule.warmup if settings.schedule.fixed else min(settings.schedule.warmup, steps // WARMUP)
    return replace(settings, schedule=replace(settings.schedule, warmup=warmup))


def describe_plan(task: Task[Any], config: RunConfig) -> str:
    """Return the number of steps and about how long they take, which is tried on two batches.

    Evaluations come on top of it: an untrained model cannot tell how long they take.
    """
    steps = count_planned_steps(task, config.training, DataShare())
    if choose_device(config.training.device).type != "cpu":
        return f"{steps:,} steps"  # a device works while Python goes on: two batches would measure little
    plan = f"{steps:,} steps, about {format_duration(steps * time_step(task, config))} and the evaluations"
    minutes = config.training.stop.minutes
    return plan if minutes is None else f"{plan}, unless it ends before: after {minutes:g} min (stop.minutes)"


def time_step(task: Task[Any], config: RunConfig) -> float:
    """Return the seconds that a model of its own needs for one batch, forward and backward."""
    batches = task.epoch(0, DataShare())
    model = build_within_memory(task.model)
    taken = []
    for batch in (batches[0], *2 * [batches[len(batches) // 2]]):
        begun = time.perf_counter()
        task.loss(model, batch).total.backward()
        taken.append(time.perf_counter() - begun)
    # The first also pays for what is compiled and allocated; the shorter of the others for what else the machine does.
    return min(taken[1:]) * config.training.optimizer.accumulate


def format_duration(seconds: float) -> str:
    """Return a time in words.

    >>> [format_duration(seconds) for seconds in (8.0, 61.0, 400.0, 9000.0)]
    ['10 seconds', '1 minute', '7 minutes', '2.5 hours']
    """
    if seconds < 55:
        return f"{max(10, 10 * round(seconds / 10))} seconds"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} minute{'s' if minutes > 1 else ''}"
    return f"{seconds / 3600:.1f} hours"
