"""Tasks by name. Nothing here imports torch, or a task, before somebody asks for one.

Each task is a package that offers the same few things; `TaskPackage` says which. Its line in `TASKS` is all that the commands
`train`, `resume`, `evaluate`, `predict`, `show` and `average` need.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast, runtime_checkable

from regard.errors import find_nearest, wrong

if TYPE_CHECKING:
    from regard.tasks.prediction import Predictor
    from regard.training import Goal


class TaskEntry(NamedTuple):
    """Where a task lives, what it learns, and the command that uses what it has learned."""

    module: str
    learns: str
    use: str = "show"


TASKS: Mapping[str, TaskEntry] = {
    "translation": TaskEntry("regard.tasks.translation", "to translate, from text or from nothing", "translate"),
    "regression": TaskEntry("regard.tasks.regression", "a curve from points: an average that looks at the near ones"),
    "speech": TaskEntry("regard.tasks.speech", "to write down what is said"),
    "reading": TaskEntry("regard.tasks.reading", "to find the answer to a question in a passage"),
    "digits": TaskEntry("regard.tasks.digits", "to read a digit in a few glimpses"),
    "inversion": TaskEntry("regard.tasks.inversion", "to say a sequence backwards, again, or in order"),
    "next-vector": TaskEntry("regard.tasks.next_vector", "the next vector of a sequence, in seven steps"),
    "captioning": TaskEntry("regard.tasks.captioning", "to say what is in an image, and where it looked", "predict"),
    "vqa": TaskEntry(
        "regard.tasks.vqa", "to answer questions about an image, and which region it looked at", "predict"
    ),
    "memory": TaskEntry("regard.tasks.memory", "to answer questions about stories, hopping from fact to fact"),
}


@runtime_checkable
class TaskPackage(Protocol):
    """What the package of a task offers.

    - `DEFAULT`: the configuration that every other is a change of: a frozen dataclass with `build_task`, its own name, and
      `training`. `PRESETS`: the names that `--preset` takes. `DATA`: what may be named as data, in a sentence or two.
    - `configure(preset, data, values)`: the configuration for a new run; `data` are the names on the command line,
      `values` the fields by dotted name, as text. `apply_changes(config, values)`: another with some fields replaced.
    - `build_task(config, run)`: a `regard.training.Task` with `notes`, what is worth knowing about its data; with a run
      folder, as that has kept it. `get_goal(config)`: the same goal, without opening the data.
    - `load(config, run, weights)`: what was trained, ready to be asked. See `regard.tasks.prediction.Predictor`.
    """

    DEFAULT: Any
    PRESETS: Mapping[str, Any]
    DATA: str

    def configure(self, preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> Any: ...

    def apply_changes(self, config: Any, values: Mapping[str, Any]) -> Any: ...

    def build_task(self, config: Any, run: Path | None = None) -> Any: ...

    def get_goal(self, config: Any) -> "Goal": ...

    def load(self, config: Any, run: Path, weights: Path | None = None) -> "Predictor": ...


def import_task(name: str) -> TaskPackage:
    """The package of a task.

    >>> import_task("translation").DEFAULT.task
    'translation'
    """
    if name not in TASKS:
        raise wrong("task", name, f"one of {', '.join(TASKS)}", f"write {find_nearest(name, TASKS)}")
    return cast(TaskPackage, import_module(TASKS[name].module))


def build_task(config: Any, run: Path | None) -> Any:
    """The task that a configuration describes: new, or with what the folder of a run has kept for it."""
    return import_task(config.task).build_task(config, run)


def read_task_name(run: Path) -> str:
    """The name of the task of a run folder."""
    from regard.training.config import read_toml
    from regard.training.run_folder import read_versions

    read_versions(run)
    file = run / "config.toml"
    name = read_toml(file).get("task")
    if name not in TASKS:
        fix = "use the version of regard that made it, or restore the file from a copy"
        raise wrong("task", f"{name} in {file}", f"one of {', '.join(TASKS)}", fix)
    return str(name)


def read_config(run: Path) -> Any:
    """The configuration of a run folder."""
    from regard.training.config import configure

    return configure(import_task(read_task_name(run)).DEFAULT, run / "config.toml")
