"""Tasks by name. Nothing here imports torch, or a task, before somebody asks for one.

Each task is a package that offers the same few things; `Kit` says which. Its line in `TASKS` is all that the commands
`train`, `resume`, `evaluate`, `predict`, `show` and `average` need.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, runtime_checkable

from regard.errors import nearest, wrong

if TYPE_CHECKING:
    from regard.tasks.predicting import Predictor
    from regard.training import Goal


class Entry(NamedTuple):
    """Where a task lives, what it learns, and the command that uses what it has learned."""

    module: str
    learns: str
    use: str = "show"


TASKS: Mapping[str, Entry] = {
    "translation": Entry("regard.tasks.translation", "to translate, from text or from nothing", "translate"),
    "regression": Entry("regard.tasks.regression", "a curve from points: an average that looks at the near ones"),
    "speech": Entry("regard.tasks.speech", "to write down what is said"),
    "reading": Entry("regard.tasks.reading", "to find the answer to a question in a passage"),
    "digits": Entry("regard.tasks.digits", "to read a digit in a few glimpses"),
    "inversion": Entry("regard.tasks.inversion", "to say a sequence backwards, again, or in order"),
    "next-vector": Entry("regard.tasks.next_vector", "the next vector of a sequence, in seven steps"),
    "captioning": Entry("regard.tasks.captioning", "to say what is in an image, and where it looked", "predict"),
    "vqa": Entry("regard.tasks.vqa", "to answer questions about an image, and which region it looked at", "predict"),
    "memory": Entry("regard.tasks.memory", "to answer questions about stories, hopping from fact to fact"),
}


@runtime_checkable
class Kit(Protocol):
    """What the package of a task offers.

    - `DEFAULT`: the configuration that every other is a change of: a frozen dataclass with `task`, its own name, and
      `training`. `PRESETS`: the names that `--preset` takes. `DATA`: what may be named as data, in a sentence or two.
    - `configured(preset, data, values)`: the configuration for a new run; `data` are the names on the command line,
      `values` the fields by dotted name, as text. `changed(config, values)`: another with some fields replaced.
    - `task(config, run)`: a `regard.training.Task` with `notes`, what is worth knowing about its data; with a run
      folder, as that has kept it. `goal_of(config)`: the same goal, without opening the data.
    - `load(config, run, weights)`: what was trained, ready to be asked. See `regard.tasks.predicting.Predictor`.
    """

    DEFAULT: Any
    PRESETS: Mapping[str, Any]
    DATA: str

    def configured(self, preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> Any: ...

    def changed(self, config: Any, values: Mapping[str, Any]) -> Any: ...

    def task(self, config: Any, run: Path | None = None) -> Any: ...

    def goal_of(self, config: Any) -> "Goal": ...

    def load(self, config: Any, run: Path, weights: Path | None = None) -> "Predictor": ...


def kit(name: str) -> Kit:
    """The package of a task.

    >>> kit("translation").DEFAULT.task
    'translation'
    """
    if name not in TASKS:
        raise wrong("task", name, f"one of {', '.join(TASKS)}", f"write {nearest(name, TASKS)}")
    return cast(Kit, import_module(TASKS[name].module))


def task_of(config: Any, run: Path | None) -> Any:
    """The task that a configuration describes: new, or with what the folder of a run has kept for it."""
    return kit(config.task).task(config, run)


def task_name(run: Path) -> str:
    """The name of the task of a run folder."""
    from regard.training.config import read_toml
    from regard.training.folder import recorded_versions

    recorded_versions(run)
    file = run / "config.toml"
    name = read_toml(file).get("task")
    if name not in TASKS:
        fix = "use the version of regard that made it, or restore the file from a copy"
        raise wrong("task", f"{name} in {file}", f"one of {', '.join(TASKS)}", fix)
    return str(name)


def config_of(run: Path) -> Any:
    """The configuration of a run folder."""
    from regard.training.config import configure

    return configure(kit(task_name(run)).DEFAULT, run / "config.toml")
