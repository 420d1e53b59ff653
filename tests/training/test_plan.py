"""How long a run is: the size of the data decides, unless somebody names an end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.tasks import import_task
from regard.training.plan import count_planned_steps, describe_plan
from regard.training.task import DataShare


def build(path: Path, rows: int, **values: str) -> Any:
    np.savetxt(path, np.random.default_rng(1).normal(size=(rows, 2)), delimiter=",")
    definition = import_task("next-vector")
    return definition.build_task(definition.configure(None, (str(path),), values))


def test_few_data_are_trained_on_for_enough_steps_and_many_as_the_epochs_say(tmp_path: Path) -> None:
    few, many = build(tmp_path / "few.csv", 60), build(tmp_path / "many.csv", 4000)
    settings = few.config.training
    assert (settings.stop.steps, settings.stop.epochs, settings.stop.least) == (600, None, None)
    assert settings.schedule.warmup <= 60
    assert settings.every.evaluate == 30
    assert count_planned_steps(many, many.config.training, DataShare()) > 600
    assert many.config.training.stop.epochs == 60
    assert many.config.training.every.evaluate is None


def test_few_sentences_are_not_gone_through_thousands_of_times(tmp_path: Path) -> None:
    for name in ("a.en", "a.zh"):
        (tmp_path / name).write_text("".join(f"{name} {number} {number % 7}\n" for number in range(60)))
    definition = import_task("translation")
    texts = (str(tmp_path / "a.en"), str(tmp_path / "a.zh"))
    settings = definition.build_task(definition.configure("transformer-tiny", texts, {})).config.training
    assert (settings.stop.steps, settings.schedule.warmup) == (2000, 200)
    named = definition.configure("transformer-tiny", texts, {"stop.steps": "5000"}).training.stop
    assert (named.steps, named.epochs, named.least) == (5000, None, None)


def test_who_names_an_end_means_it(tmp_path: Path) -> None:
    for ends, steps in (({"epochs": 3}, 3), ({"steps": 7}, 7), ({"steps": 900}, 900), ({"steps": 9, "epochs": 4}, 4)):
        task = build(tmp_path / "few.csv", 60, **{f"stop.{end}": str(value) for end, value in ends.items()})
        assert count_planned_steps(task, task.config.training, DataShare()) == steps
    changed = import_task("next-vector").apply_changes(task.config, {"stop.steps": "2000"})
    assert (changed.training.stop.steps, changed.training.stop.epochs) == (2000, None)
    warm = build(tmp_path / "few.csv", 60, **{"stop.least": "100", "every.evaluate": "9"}).config.training
    assert (warm.stop.steps, warm.schedule.warmup, warm.every.evaluate) == (100, 10, 9)


def test_a_warm_up_longer_than_the_run_is_shortened_unless_it_is_named(tmp_path: Path) -> None:
    def find_warmup(**values: str) -> int:
        return int(build(tmp_path / "few.csv", 60, **values).config.training.schedule.warmup)

    usual = find_warmup(**{"stop.steps": "5000"})
    assert usual > 7
    assert find_warmup(**{"stop.steps": str(usual)}) == usual // 10
    assert find_warmup(**{"stop.steps": str(usual + 1)}) == usual
    assert find_warmup(**{"stop.epochs": "3"}) == 0
    assert find_warmup(**{"stop.steps": "7", "schedule.warmup": "20"}) == 20
    assert find_warmup(**{"stop.least": "100", "schedule.warmup": "20"}) == 20


def test_the_plan_says_the_steps_and_the_time(tmp_path: Path) -> None:
    task = build(tmp_path / "few.csv", 60)
    assert describe_plan(task, task.config).startswith("600 steps, about ")
    training = task.config.training
    moved = replace(task.config, training=replace(training, device="meta"))
    assert describe_plan(task, moved) == "600 steps"
    brief = replace(task.config, training=replace(training, stop=replace(training.stop, minutes=1.5)))
    assert describe_plan(task, brief).endswith(
        "and the evaluations, unless it ends before: after 1.5 min (stop.minutes)"
    )
