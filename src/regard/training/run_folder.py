"""The run folder, which documents itself and appears whole, by one rename.

runs/example/
    config.toml           every setting of the run
    command.txt           each command that worked on it, and what a resumption changed
    versions.json         the format of this folder, and the software and threads it was made with
    metrics.jsonl         one JSON object a line: the events `Stepped` and `Evaluated`
    weights.safetensors   the best weights so far; the last ones if nothing was evaluated
    checkpoints/          for resuming and averaging
    …                     files of the task, such as a vocabulary
"""

import contextlib
import json
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from regard.datasets.plain_files import open_regular, read_bytes, read_json
from regard.errors import InputError, find_nearest, wrong
from regard.training.checkpoint import FORMAT, find_checkpoints, rank_checkpoints, read_states, read_tensors
from regard.training.config import TEXT, compare_configs, configure
from regard.training.lock import Lock, check_free
from regard.training.settings import RunConfig
from regard.training.storage import (
    StorageError,
    create_atomically,
    get_temporary_path,
    replace_file,
    replace_file_by_copy,
    wrap_storage_errors,
    write_file,
)
from regard.training.task import Goal, Task
from regard.training.tensors import to_safetensors
from regard.training.toml import to_toml


def create_run(folder: Path, config: RunConfig, task: Task[Any], lock: Lock) -> None:
    """Make a new run folder, locked. Until it is complete, nothing has its name."""
    check_unused(folder)
    check_free(get_temporary_path(folder), folder)
    try:
        with wrap_storage_errors("run", folder), create_atomically(folder) as temporary:
            temporary.mkdir()
            lock.acquire(temporary)
            task.save(temporary)
            write_file(temporary / "config.toml", to_toml(config).encode())
            write_file(temporary / "versions.json", json.dumps(collect_versions(), indent=1).encode())
            write_file(temporary / "command.txt", format_command(0).encode())
            write_file(temporary / "metrics.jsonl", b"")
    except StorageError:
        if not lock.follow(folder):
            check_unused(folder)  # somebody else may have made it meanwhile
        raise
    lock.follow(folder)


def check_unused(folder: Path) -> None:
    """Raise unless a new run may be made here."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise wrong("folder", f"{folder}, which is a file", "a new folder", "give another folder")
    check_free(folder)
    if (folder / "versions.json").is_file():
        step = int(find_checkpoints(folder)[-1].name) if find_checkpoints(folder) else 0
        fix = f"{format_resume_command(folder)}, or give another folder"
        raise wrong("folder", f"{folder}, which holds a run at step {step}", "a new folder", fix)
    if any(folder.iterdir()):
        raise wrong("folder", f"{folder}, which holds other files", "a new folder", "give another folder")


def format_resume_command(folder: Path) -> str:
    """Return the command that resumes a run."""
    return f"regard resume {shlex.quote(str(folder))}"


def read_versions(folder: Path) -> dict[str, Any]:
    """Return the content of `versions.json`; raise if this is not a run folder that can be used."""
    try:
        found = read_json(folder / "versions.json", TEXT)
        version = found["format"]
    except (OSError, ValueError, KeyError):
        raise refuse_folder(folder) from None
    if version != FORMAT:
        fix = f"use regard {found.get('regard')}, which made it, or start a new run"
        raise wrong("run", f"{folder} of format {version}", f"format {FORMAT}", fix)
    return found


def refuse_folder(folder: Path) -> InputError:
    """Return the error for a folder that is no run: one of those beside it may be meant."""
    got = f"{folder}, which is not a run folder" if folder.is_dir() else f"{folder}, which is not there"
    return wrong("run", got, "a folder that regard train made", suggest_run(folder))


def suggest_run(folder: Path) -> str:
    """Return what to write in place of a name that is no run: the nearest run in it, beside it, or in `runs`."""
    for place in dict.fromkeys((folder, folder.parent, Path("runs"))):
        with contextlib.suppress(OSError):
            found = [path for path in place.iterdir() if (path / "versions.json").is_file()]
            runs = {path.name: path for path in found if path.resolve() != folder.resolve()}
            if runs:
                return f"write {runs[find_nearest(folder.name, runs)]}, or see them all with regard runs {place}"
    return "check the path, or make a run with regard train"


def log_resumption(folder: Path, config: RunConfig, step: int) -> list[str]:
    """Log the command and settings of a resumption; return what differs from before, in words."""
    before, now = read_versions(folder), collect_versions()
    notes = [f"{name} was {before.get(name)}, is {now[name]}" for name in now if now[name] != before.get(name)]
    changes = [f"{name} was {old}, is {new}" for name, (old, new) in compare_settings(folder, config).items()]
    with wrap_storage_errors("run", folder):
        log = "".join([format_command(step), *(f"# {note}\n" for note in notes + changes)])
        replace_file(folder / "command.txt", read_commands(folder) + log.encode())
        replace_file(folder / "config.toml", to_toml(config).encode())
    return notes + changes


def read_commands(folder: Path) -> bytes:
    """Return what command.txt holds; nothing if somebody removed it."""
    try:
        return read_bytes(folder / "command.txt")
    except FileNotFoundError:
        return b""
    except ValueError as error:
        raise wrong("run", f"{folder / 'command.txt'} ({error})", "a shorter one", "rename or remove it") from None


def compare_settings(folder: Path, config: RunConfig) -> dict[str, tuple[object, object]]:
    """Return the differences between the folder's config.toml and `config`, without the path of the folder."""
    try:
        changes = compare_configs(configure(config, folder / "config.toml"), config)
    except InputError:
        return {"config.toml": ("another kind of config", "this one")}
    changes.pop("training.folder", None)
    return changes


def collect_versions() -> dict[str, Any]:
    """Return what the exact bits of a result depend on."""
    return {
        "format": FORMAT,
        "regard": get_version(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
    }


def get_version() -> str:
    """Return the version of regard."""
    try:
        return metadata.version("regard")
    except metadata.PackageNotFoundError:
        return "not installed"  # run from the sources


def format_command(step: int) -> str:
    """Return the present command as lines of command.txt."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    return f"# {time} from step {step}\n{shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])}\n"


def publish_best_weights(run: Path, goal: Goal) -> None:
    """Make `weights.safetensors` the best weights of the run, or the last if nothing was evaluated."""
    candidates = rank_checkpoints(run, goal)[:1] or list(read_states(run))[-1:]
    for path in candidates:
        plain = path / "weights.safetensors"
        if plain.is_file():
            replace_file_by_copy(run / "weights.safetensors", plain)
        else:
            replace_file(run / "weights.safetensors", to_safetensors(read_tensors(path, "weights")))


class MetricsLog:
    """`metrics.jsonl`, open for appending. A checkpoint knows how long it was, so it can be cut back."""

    def __init__(self, run: Path, length: int) -> None:
        self.path = run / "metrics.jsonl"
        with wrap_storage_errors("metrics", self.path):
            self.file = open_regular(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, buffering=0)
            self.file.truncate(min(length, self.size()))

    def append(self, values: dict[str, Any]) -> None:
        line = json.dumps(values).encode() + b"\n"
        with wrap_storage_errors("metrics", self.path):
            while line:
                line = line[self.file.write(line) :]

    def size(self) -> int:
        """Return the bytes so far."""
        return os.fstat(self.file.fileno()).st_size

    def sync(self) -> int:
        """Return the bytes so far, which are on the disk when this returns."""
        with wrap_storage_errors("metrics", self.path):
            os.fsync(self.file.fileno())
        return self.size()

    def close(self) -> None:
        self.file.close()
