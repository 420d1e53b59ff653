"""From a recipe to its result: trained, or resumed, and evaluated by the commands that users have."""

import json
import subprocess
import sys
import tomllib
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.recipes.recipe import Recipe, Run
from benchmarks.results import write
from benchmarks.worker import find_commit
from regard.cli.machine import describe_machine

# What a result repeats of its recipe, so that it can be read alone.
COPIED = ("title", "task", "mechanism", "data", "metric", "unit", "least", "most", "published", "also", "wanted")


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run: its whole configuration, what it took, and what evaluation said."""

    name: str
    config: dict[str, Any]
    seed: int
    steps: int
    seconds: float
    metrics: dict[str, dict[str, Any]]
    value: float


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of a recipe. The first of the runs is the result."""

    recipe: str
    title: str
    task: str
    mechanism: str
    data: str
    metric: str
    unit: str
    least: float | None
    most: float | None
    published: str
    machine: dict[str, Any]
    date: str
    commit: str
    runs: list[RunResult]
    also: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        return self.runs[0].value

    @property
    def beside(self) -> dict[str, float]:
        """What else there is to know: further figures of the first run, and the result of the others."""
        further = {name: find_figure(self.runs[0].metrics, path) for name, path in self.also.items()}
        return further | {run.name: run.value for run in self.runs[1:]}

    @property
    def within(self) -> bool:
        """Whether the result is on the right side of its bound."""
        enough = self.least is None or self.value >= self.least
        return enough and (self.most is None or self.value <= self.most)

    @property
    def missed(self) -> dict[str, float]:
        """What was wanted of the figures beside it and is not there."""
        return {name: least for name, least in self.wanted.items() if not self.beside[name] >= least}

    @property
    def reached(self) -> bool:
        """Whether all that was wanted is there."""
        return self.within and not self.missed


def run_recipe(recipe: Recipe, data: Path, runs: Path) -> TaskResult:
    """Run every run of a recipe, one after another."""
    done = [train(recipe, run, data, runs / f"{recipe.name}-{number}") for number, run in enumerate(recipe.runs)]
    facts: dict[str, Any] = {name: getattr(recipe, name) for name in COPIED}
    return TaskResult(
        recipe.name, **facts, machine=describe_machine()._asdict(), date=get_date(), commit=find_commit(), runs=done
    )


def get_date() -> str:
    return date.today().isoformat()


def train(recipe: Recipe, run: Run, data: Path, folder: Path) -> RunResult:
    """Train to the end, from the last checkpoint if there is one, and evaluate."""
    if (folder / "versions.json").is_file():
        run_regard("resume", str(folder))
    else:
        fields = [word for name, value in run.fields.items() for word in (f"--{name}", str(value))]
        preset = ["--preset", run.preset] if run.preset else []
        sources = [str(data / name) for name in recipe.source]
        run_regard("train", recipe.task, *sources, *preset, *fields, "--folder", str(folder))
    metrics = json.loads(
        run_regard("evaluate", str(folder), *average_checkpoints(run, folder), *run.evaluate, "--json", shown=False)
    )
    config = remove_paths(tomllib.loads((folder / "config.toml").read_text(encoding="utf-8")), data)
    steps, seconds = read_training_cost(folder)
    value = find_figure(metrics, recipe.metric)
    return RunResult(run.name, config, config["training"]["seed"], steps, seconds, metrics, value)


def average_checkpoints(run: Run, folder: Path) -> list[str]:
    """Average the last checkpoints if the run asks for it; return the flags that choose the mean."""
    if not run.average:
        return []
    run_regard("average", str(folder), "--count", str(run.average))
    return ["--weights", "averaged.safetensors"]


def find_figure(metrics: dict[str, dict[str, Any]], name: str) -> float:
    """Return a number by its set and its name: `test.accuracy`; of translations, `test.bleu.score`."""
    found: Any = metrics
    for part in name.split("."):
        found = found[part]
    return float(found)


def read_training_cost(folder: Path) -> tuple[int, float]:
    """Return steps and seconds of training, from the run's own journal: resumed runs add up."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    stepped = [line for line in lines if line["event"] == "stepped"]
    return stepped[-1]["step"], sum(line["seconds"] for line in stepped)


def remove_paths(config: dict[str, Any], data: Path) -> dict[str, Any]:
    """Return the configuration without the paths of this machine."""
    text = json.dumps(config).replace(str(data.resolve()) + "/", "").replace(str(data) + "/", "")
    cleaned: dict[str, Any] = json.loads(text)
    cleaned["training"]["folder"] = Path(cleaned["training"]["folder"]).name
    return cleaned


def run_regard(*arguments: str, shown: bool = True) -> str:
    """Run a command of the package in a process of its own; return its output, or show it on the screen."""
    command = [sys.executable, "-m", "regard", *arguments]
    done = subprocess.run(command, check=True, text=True, stdout=None if shown else subprocess.PIPE)
    return done.stdout or ""


def save(result: TaskResult, folder: Path) -> Path:
    """Write it down."""
    return write(asdict(result), folder / f"tasks-{result.recipe}.json")


def load(path: Path) -> TaskResult:
    """Read it again."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return TaskResult(**{**found, "runs": [RunResult(**run) for run in found["runs"]]})
