"""What a recipe says, read from its TOML file.

title = "MNIST in three glimpses"
task = "digits"
mechanism = "gated heads with a memory"
data = "MNIST"
source = ["mnist"]               # paths below the folder of data sets, as the task reads them
metric = "test.accuracy"         # a set and a metric of regard evaluate --json
least = 99.0                     # or most = …
unit = "%"
published = "98.9 % (Mnih et al. 2014)"
also = { "validation" = "validation.accuracy" }  # further figures of the first run that the table shows
wanted = { "validation" = 98.5 } # the least of those, and of the runs beside the first, where there is one
fields = { "training.threads" = 1 }  # flags of every run; a run's own come after them
[[runs]]                         # the first is the result, others stand beside it
name = "gated heads"
preset = "gated"
fields = { "training.seed" = 1 }
average = 5                      # the last checkpoints whose mean is evaluated, where it is not the best one
evaluate = ["--beam", "5"]       # flags of regard evaluate, where it needs any
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Run:
    """One training of a recipe."""

    name: str
    preset: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    average: int = 0
    evaluate: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A result to reach, and how."""

    name: str
    title: str
    task: str
    mechanism: str
    data: str
    metric: str
    runs: list[Run]
    source: list[str] = field(default_factory=list)
    unit: str = ""
    least: float | None = None
    most: float | None = None
    published: str = ""
    also: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, float] = field(default_factory=dict)


def list_recipes() -> list[str]:
    """Return every recipe there is."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_recipe(name: str, folder: Path = FOLDER) -> Recipe:
    """Return the recipe of this name."""
    values = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    shared = values.pop("fields", {})
    runs = [Run(**{**run, "fields": shared | run.get("fields", {})}) for run in values.pop("runs")]
    return Recipe(name=name, runs=runs, **values)
