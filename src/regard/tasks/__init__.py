"""Tasks by name: each is a module with `DEFAULT`, its configuration, and `task(config, run)`."""

import importlib
from pathlib import Path
from typing import Any

from regard.errors import wrong
from regard.training.config import configure, read_toml
from regard.training.folder import recorded_versions

TASKS = {"translation": "regard.tasks.translation"}


def task_of(config: Any, run: Path | None) -> Any:
    """The task that a configuration describes: new, or with what the folder of a run has kept for it."""
    return module(config.task).task(config, run)


def config_of(run: Path) -> Any:
    """The configuration of a run folder."""
    recorded_versions(run)
    file = run / "config.toml"
    name = read_toml(file).get("task")
    if name not in TASKS:
        fix = "use the version of regard that made it, or restore the file from a copy"
        raise wrong("task", f"{name} in {file}", f"one of {', '.join(TASKS)}", fix)
    return configure(module(name).DEFAULT, file)


def module(name: str) -> Any:
    return importlib.import_module(TASKS[name])
