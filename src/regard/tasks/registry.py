"""Tasks by name. Nothing here imports torch, or a task, before somebody asks for one."""

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.errors import find_nearest, wrong

if TYPE_CHECKING:
    from regard.tasks.definition import TaskDefinition


class TaskEntry(NamedTuple):
    """Where the definition of a task is, what the task learns, and the command that uses what it has learned."""

    package: str
    definition: str
    learns: str
    command: str = "show"


# The one line that a new task needs: all commands know it from then on.
TASKS = {
    "translation": TaskEntry(
        "translation", "TranslationDefinition", "to translate, from text or from nothing", "translate"
    ),
    "regression": TaskEntry(
        "regression", "RegressionDefinition", "a curve from points: an average that looks at the near ones"
    ),
    "speech": TaskEntry("speech", "SpeechDefinition", "to write down what is said"),
    "reading": TaskEntry("reading", "ReadingDefinition", "to find the answer to a question in a passage"),
    "digits": TaskEntry("digits", "DigitsDefinition", "to read a digit in a few glimpses"),
    "inversion": TaskEntry("inversion", "InversionDefinition", "to say a sequence backwards, again, or in order"),
    "next-vector": TaskEntry("next_vector", "NextVectorDefinition", "the next vector of a sequence, in seven steps"),
    "captioning": TaskEntry(
        "captioning", "CaptioningDefinition", "to say what is in an image, and where it looked", "predict"
    ),
    "vqa": TaskEntry(
        "vqa", "VqaDefinition", "to answer questions about an image, and which region it looked at", "predict"
    ),
    "memory": TaskEntry("memory", "MemoryDefinition", "to answer questions about stories, hopping from fact to fact"),
}


@cache
def import_task(name: str) -> "TaskDefinition[Any]":
    """Return the definition of a task.

    >>> import_task("translation").default.task
    'translation'
    """
    if name not in TASKS:
        raise wrong("task", name, f"one of {', '.join(TASKS)}", f"write {find_nearest(name, TASKS)}")
    entry = TASKS[name]
    definition: TaskDefinition[Any] = getattr(import_module(f"regard.tasks.{entry.package}"), entry.definition)()
    return definition


def build_task(config: Any, run: Path | None) -> Any:
    """Return the task that a configuration describes: new, or with what the folder of a run has kept for it."""
    return import_task(config.task).build_task(config, run)


def read_task_name(run: Path) -> str:
    """Return the name of the task of a run folder."""
    from regard.training.config import read_toml
    from regard.training.run_folder import read_versions

    read_versions(run)
    file = run / "config.toml"
    name = read_toml(file).get("task")
    if not isinstance(name, str) or name not in TASKS:
        fix = "use the version of regard that made it, or restore the file from a copy"
        raise wrong("task", f"{name} in {file}", f"one of {', '.join(TASKS)}", fix)
    return name


def read_config(run: Path) -> Any:
    """Return the configuration of a run folder."""
    from regard.training.config import configure

    return configure(import_task(read_task_name(run)).default, run / "config.toml")
