"""A task in one class: its presets, and the way from a command line to a configuration, to training, to predictions."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

from regard.errors import find_nearest, wrong
from regard.tasks.data.fingerprints import check_fingerprint
from regard.tasks.prediction import Predictor
from regard.training import Goal, configure
from regard.training.config import walk_fields
from regard.training.plan import fit_training
from regard.training.toml import NOTHING

ENDS = ("steps", "epochs")  # of a run: the fields of `stop` that say how long it is
Config = TypeVar("Config")


class TaskDefinition(ABC, Generic[Config]):
    """What the commands need to know about a task, beside its line in `regard.tasks.registry.TASKS`.

    A subclass names its configuration, presets and data, and says how data are opened, how a `regard.training.Task` is
    built from them, and how a trained one is loaded.
    """

    config_type: type[Config]  # in brackets behind the base: frozen, with `task`, its name, `data`, `training`
    presets: Mapping[str, Any]  # by the names that --preset takes; the first is the default
    data_help: str  # what may be named as data, in a sentence or two
    data_field: str  # the field of `config.data` that names the data; empty if there is nothing to name
    data_noun: str = "items"  # what a message calls the data
    run_name: str = "{data}-{preset}"  # the name of a run folder; {given} is the preset only if it was named
    goal: Goal | None = None  # what decides which weights are the best; if none, config.measure.goal says it
    aliases: Mapping[str, Sequence[str]] = {}  # names that stand for several fields

    def __init_subclass__(cls) -> None:
        (kind,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]
        cls.config_type = kind

    @cached_property
    def default(self) -> Config:
        """The configuration of a run for which nothing is named."""
        return self.configure(None, (), {})

    def configure(self, preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> Config:
        """Return the configuration of a new run.

        `data` are the names on the command line; `values` has fields as text, by their dotted names or their ends.
        """
        name = next(iter(self.presets)) if preset is None else preset
        if name not in self.presets:
            fix = f"write --preset {find_nearest(name, self.presets)}"
            raise wrong("preset", name, f"one of {', '.join(self.presets)}", fix)
        values = self.resolve_values(values)
        if data:
            values[f"data.{self.data_field}"] = self.join_data_names(data)
        named = {field: value for field, value in values.items() if field.startswith("data.")}
        blank: Any = self.config_type()
        settings = configure(blank, None, named).data
        base: Any = self.build_preset(name, settings)
        source = self.shorten_data_name(str(getattr(settings, self.data_field, "")))
        folder = self.run_name.format(data=source, preset=name, given=preset or "").strip("-")
        training = replace(base.training, folder=Path("runs") / folder)
        values = drop_other_end(values)
        if any(f"training.stop.{limit}" in values for limit in ENDS):
            training = replace(training, stop=replace(training.stop, least=None))
        if "training.schedule.warmup" in values:
            training = replace(training, schedule=replace(training.schedule, fixed=True))
        base = replace(base, training=training)
        config: Config = configure(base, None, values)
        return config

    def apply_changes(self, config: Config, values: Mapping[str, Any]) -> Config:
        """Return `config` with other values for some fields, which may be named by the ends of their names."""
        return configure(config, None, drop_other_end(self.resolve_values(values)))

    def resolve_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values by the whole names of their fields."""
        known = [name for name, _ in walk_fields(self.config_type())]
        return {
            field: value
            for name, value in values.items()
            for field in self.aliases.get(name) or resolve_field(name, value, known)
        }

    def join_data_names(self, names: Sequence[str]) -> str:
        """Return the value of the field that names the data; by default there is one name."""
        if not self.data_field:
            raise wrong("data", names[0], f"none: {self.data_noun} are generated", "leave it out")
        if len(names) > 1:
            raise wrong("data", f"{len(names)} names", "one name, or none for the default", "name one file or folder")
        return make_path_absolute(names[0])

    def shorten_data_name(self, name: str) -> str:
        """Return what a run folder calls the data: the last part of a path, up to its first dot."""
        return Path(name).name.split(".")[0]

    def build_preset(self, name: str, data: Any) -> Config:
        """Return the configuration that a preset has for these data."""
        config: Config = replace(self.presets[name], data=data)
        return config

    def get_goal(self, config: Any) -> Goal:
        """Return which metric decides which weights are the best."""
        return self.goal or choose_goal(config.measure.goal)

    def build_task(self, config: Config, run: Path | None = None) -> Any:
        """Return a `regard.training.Task` with `notes` on its data: new, or with what a run folder has kept for it.

        Its `config` is that of the run. If the run is new, what no one named follows from the data.
        """
        data = self.open_data(config)
        if run is not None:
            check_fingerprint(self.data_noun, data.fingerprint, run)
            return self.assemble_task(config, data, run)
        task: Any = self.assemble_task(self.adapt_config(config, data), data, None)
        task.config = replace(task.config, training=fit_training(task.config.training, task))
        return task

    def adapt_config(self, config: Config, data: Any) -> Config:
        """Return the configuration with the values that follow from the data; by default there are none."""
        return config

    @abstractmethod
    def open_data(self, config: Config) -> Any:
        """Return the data that a configuration names, which have a `fingerprint`."""

    @abstractmethod
    def assemble_task(self, config: Config, data: Any, run: Path | None) -> Any:
        """Return the task of a new run, or of one that has its vocabulary in a folder."""

    @abstractmethod
    def load(self, config: Config, run: Path, weights: Path | None = None) -> Predictor:
        """Return what a run has trained, with its best weights or others."""


def drop_other_end(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values without the preset's epochs if steps are named, and without its steps if epochs are.

    >>> drop_other_end({"training.stop.steps": "2000"})
    {'training.stop.steps': '2000', 'training.stop.epochs': None}
    """
    named = [limit for limit in ENDS if values.get(f"training.stop.{limit}") not in (None, NOTHING)]
    others = [limit for limit in ENDS if f"training.stop.{limit}" not in values]
    return values | {f"training.stop.{limit}": None for limit in others if named}


def resolve_field(name: str, value: Any, fields: Sequence[str]) -> list[str]:
    """Return the full names of the fields that `name` abbreviates: the one nearest the top that ends so.

    One seed means all of them, so that runs with two seeds share nothing.

    >>> (
    ...     resolve_field("stop.steps", 9, ["training.stop.steps"]),
    ...     resolve_field("seed", 3, ["data.seed", "training.seed"]),
    ... )
    (['training.stop.steps'], ['data.seed', 'training.seed'])
    >>> resolve_field("size", 16, ["data.size", "model.size"])
    Traceback (most recent call last):
    regard.errors.InputError: size: got 16, expected one of data.size, model.size; fix: write the whole name
    """
    if name == "seed":
        return [field for field in fields if field.endswith(".seed")]
    candidates = [field for field in fields if field.endswith(f".{name}")]
    if name in fields or not candidates:
        return [name]
    depth = min(field.count(".") for field in candidates)
    highest = [field for field in candidates if field.count(".") == depth]
    if len(highest) > 1:
        raise wrong(name, value, f"one of {', '.join(candidates)}", "write the whole name")
    return highest


def make_path_absolute(name: str) -> str:
    """Return a name of data; a path as an absolute one, so that a run can be resumed from another folder."""
    return str(Path(name).resolve()) if Path(name).exists() else name


def choose_goal(metric: str) -> Goal:
    """Return whether more or less of a metric is better."""
    return Goal(metric, "lower" if metric in ("error", "loss") else "higher")
