"""`regard train`: from data to a run folder, for any task."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from regard.cli.dispatch import Arguments
from regard.cli.fields import ParsedArguments, describe_fields, find_switches, parse_arguments
from regard.cli.output import open_console
from regard.cli.training import run_training
from regard.errors import find_nearest, wrong

if TYPE_CHECKING:
    from regard.tasks.definition import TaskDefinition

USAGE = (
    "Usage: regard train {task} [DATA …] [--preset NAME] [--config FILE] [--field value …]\n\nLearn {learns}. {data}"
)
OPTIONS = {
    "preset": "a model and how to train it: {presets}",
    "config": "a TOML file; its fields override the preset, and flags override both",
    "nproc": "processes on this machine; under torchrun leave it out",
    "restarts": "times that processes which die are started again from the last checkpoint",
    "tensorboard": "also write curves for TensorBoard",
    "print-config": "print the configuration and do nothing",
    "help": "show this",
}
SWITCHES = {"help", "print_config", "tensorboard"}
HELP = ("--help", "-h")


def train(*arguments: Arguments) -> None:
    """Train a model for a task."""
    from regard.tasks.registry import TASKS, import_task

    if not arguments or arguments[0] in HELP:
        show_tasks()
        return
    name, *rest = arguments
    if name not in TASKS:
        raise wrong("task", name, f"one of {', '.join(TASKS)}", f"write regard train {find_nearest(name, TASKS)}")
    if any(word in HELP for word in rest):
        show_help(name, import_task(name))
        return
    train_task(import_task(name), rest)


def train_task(task: "TaskDefinition[Any]", arguments: list[str]) -> None:
    """Train a task with the arguments behind its name, or print its configuration."""
    from regard.training import to_toml

    options = {name.replace("-", "_") for name in OPTIONS}
    given = parse_arguments(arguments, options, SWITCHES | find_switches(task.default))
    config = build_config(task, given)
    if "print_config" in given.options:
        print(to_toml(config), end="")
        return
    run_training(config, resume=None, options=given.options)


def build_config(task: "TaskDefinition[Any]", given: ParsedArguments) -> Any:
    """Return the configuration of the preset with the fields of the file, then those of the flags."""
    from regard.training.config import flatten_tables, read_toml

    file = given.options.get("config")
    values = dict(flatten_tables(read_toml(Path(file)))) if file else {}
    return task.configure(given.options.get("preset"), given.names, values | given.fields)


def show_tasks() -> None:
    """Print a line for every task."""
    from regard.tasks.registry import TASKS

    console = open_console()
    console.print("Usage: regard train TASK [DATA …] [--preset NAME] [--field value …]", markup=False)
    table = build_table("Tasks", headers=("", ""))
    for name, entry in TASKS.items():
        table.add_row(name, f"learn {entry.learns}")
    console.print(table)
    console.print("\nregard train TASK --help shows what its data may be, its presets, every field.")


def build_table(title: str, headers: Sequence[str]) -> Table:
    """Return a table whose first column, of names to be typed, is never broken or cut."""
    table = Table(box=None, pad_edge=False, title=f"\n{title}", title_justify="left", show_header=any(headers))
    for number, header in enumerate(headers):
        table.add_column(header, no_wrap=number == 0, overflow="fold")
    return table


def show_help(name: str, task: "TaskDefinition[Any]") -> None:
    """Print the options, and every field of the configuration with its default and its meaning."""
    from regard.tasks.registry import TASKS

    console = open_console()
    console.print(
        USAGE.format(task=name, learns=TASKS[name].learns, data=" ".join(task.data_help.split())), markup=False
    )
    options = build_table("Options", headers=("", ""))
    for option, meaning in OPTIONS.items():
        options.add_row(f"--{option}", meaning.format(presets=", ".join(task.presets)))
    console.print(options)
    fields = build_table("Fields", headers=("field", "default", ""))
    for field in describe_fields(task.default):
        fields.add_row(f"--{field.name}", format_default(field.value), field.describe())
    console.print(fields)
    console.print("\nThe end of a name will do, and means the field nearest the top: --folder, --stop.steps.")


def format_default(value: object) -> str:
    """Return a default value as it is written on the command line."""
    if value is None:
        return "none"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
