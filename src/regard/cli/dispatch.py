"""Call the command that fits the task of a run, because its flags depend on the task.

`TASK_COMMANDS` names the commands of tasks with flags of their own; all other tasks share one.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from regard.cli.runs import is_exported

Arguments = Annotated[str, Parameter(allow_leading_hyphen=True)]
SHARED_COMMANDS = {
    "evaluate": "regard.cli.evaluate:evaluate",
    "predict": "regard.cli.predict:predict",
    "show": "regard.cli.show:show",
}
TASK_COMMANDS = {
    ("translation", "evaluate"): "regard.cli.evaluate_translation:evaluate",
    ("translation", "show"): "regard.cli.show_translation:show",
    ("next-vector", "predict"): "regard.cli.predict:forecast",
}


def evaluate(*arguments: Arguments) -> None:
    """Say how good a run is."""
    call_command("evaluate", arguments)


def predict(*arguments: Arguments) -> None:
    """Ask a run about one thing."""
    call_command("predict", arguments)


def show(*arguments: Arguments) -> None:
    """Show where a run looked."""
    call_command("show", arguments)


def is_file(word: str) -> bool:
    """Return whether a word names a file and not a run folder."""
    return word.endswith(".safetensors") or Path(word).is_file()


def call_command(command: str, arguments: Sequence[str]) -> None:
    """Run the command for the task of the run that is among the arguments."""
    from regard.tasks import read_task_name

    if command == "show" and "--curves" in arguments:
        call_function("show", "regard.cli.show_curves:show", arguments)
        return
    run = next((Path(word) for word in arguments if (Path(word) / "versions.json").is_file()), None)
    target = SHARED_COMMANDS[command]
    if run is None and any(is_exported(Path(word)) for word in arguments):
        target = TASK_COMMANDS.get(("translation", command), target)
    elif run is not None:
        target = TASK_COMMANDS.get((read_task_name(run), command), target)
    elif command == "show" and arguments and arguments[0] in ("positions", "structure"):
        target = f"regard.cli.show_{arguments[0]}:show"
    elif command == "show" and arguments and is_file(arguments[0]):
        target = "regard.cli.show_recording:show"
    call_function(command, target, arguments)


def call_function(command: str, target: str, arguments: Sequence[str]) -> None:
    """Parse the arguments of a function, named as `module:function`, and call it."""
    module, _, function = target.partition(":")
    app = App(name=f"regard {command}", help_format="plaintext", version_flags=[], suppress_keyboard_interrupt=False)
    app.default(getattr(import_module(module), function))
    app(arguments or ["--help"], exit_on_error=False, print_error=False, result_action="return_value")
