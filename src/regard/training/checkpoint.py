"""Checkpoints: folders that appear whole, by one rename, with the sha256 of every file in them.

    checkpoints/000000120/   weights.safetensors  optimizer.safetensors  state.json  manifest.json

Sharded ones have folders `weights/` and `optimizer/` instead, with a file for each process.
"""

import contextlib
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.datasets.plain_files import read_json
from regard.errors import InputError, format_message, wrong
from regard.training.progress import Progress, StepResult
from regard.training.storage import (
    DELETING_PREFIX,
    compute_sha256,
    remove_folder,
    replace_file,
    sync_folder,
    write_file,
)
from regard.training.task import Goal
from regard.training.tensors import read_safetensors

FORMAT = 1
RESUMABLE_CHECKPOINTS = 2  # the newest keep their optimizer; the second is for the case that the first is damaged
TEMPORARY_PREFIX = ".saving-"
DAMAGED_PREFIX = "damaged-"
STATE_FIELDS = ("progress", "metrics_bytes", "due")


class DamageError(InputError):
    """A checkpoint that has changed since it was written."""


def find_checkpoints(run: Path) -> list[Path]:
    """Return every checkpoint of a run, oldest first."""
    folder = run / "checkpoints"
    names = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in names if path.name.isdigit() and path.is_dir())


def get_checkpoint_path(run: Path, step: int) -> Path:
    """Return the path of the checkpoint of a step."""
    return run / "checkpoints" / f"{step:09d}"


def create_temporary(run: Path, step: int) -> Path:
    """Return a new folder to fill. Its name is not that of a checkpoint, so nothing mistakes it for one."""
    folder = run / "checkpoints"
    folder.mkdir(exist_ok=True)
    remove_leftovers(run)
    temporary = folder / f"{TEMPORARY_PREFIX}{step:09d}"
    temporary.mkdir()
    return temporary


def remove_leftovers(run: Path) -> None:
    """Remove what a process left behind that was killed while it wrote or deleted a checkpoint."""
    for kind in (TEMPORARY_PREFIX, DELETING_PREFIX):
        for left_over in (run / "checkpoints").glob(f"{kind}*"):
            shutil.rmtree(left_over)


def seal(temporary: Path, state: Mapping[str, Any]) -> Path:
    """Write the state and the manifest into the folder of `create_temporary`, and rename it to a checkpoint."""
    write_file(temporary / "state.json", json.dumps(state, indent=1).encode())
    files = [path for path in sorted(temporary.rglob("*")) if path.is_file()]
    listed = {str(path.relative_to(temporary)): describe_file(path) for path in files}
    write_file(temporary / "manifest.json", json.dumps({"format": FORMAT, "files": listed}, indent=1).encode())
    for folder in {path.parent for path in files} | {temporary}:
        sync_folder(folder)
    final = temporary.with_name(temporary.name.removeprefix(TEMPORARY_PREFIX))
    if final.exists():
        remove_folder(final)  # saved at the same step after an error
    temporary.rename(final)
    sync_folder(final.parent)
    return final


def describe_file(path: Path) -> dict[str, Any]:
    """Return size and sha256 of a file, as the manifest lists them."""
    return {"bytes": path.stat().st_size, "sha256": compute_sha256(path)}


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the files of a checkpoint with their sizes and sha256."""
    try:
        content = read_json(path / "manifest.json")
        files, version = dict(content["files"]), content["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise damage_error(path, "no readable manifest.json") from None
    if version != FORMAT:
        fix = "use the version of regard that wrote it, or start a new run"
        raise wrong("checkpoint", f"{path} of format {version}", f"format {FORMAT}", fix)
    return files


def verify_checkpoint(path: Path) -> None:
    """Raise unless every file is unchanged and nothing that is needed is missing."""
    files = read_manifest(path)
    for name, expected in files.items():
        file = path / name
        if not file.is_file():
            raise damage_error(path, f"no {name}")
        if describe_file(file) != expected:
            raise damage_error(path, f"a {name} that is not the one written (its sha256 differs)")
    if not any(name.startswith("weights") for name in files):
        raise damage_error(path, "no weights in its manifest.json")
    read_state(path)


def damage_error(path: Path, what: str) -> DamageError:
    """Return the error of a checkpoint that cannot be used."""
    fix = "restore that folder from a copy, or start a new run"
    return DamageError(format_message("checkpoint", f"{path} with {what}", "a whole checkpoint", fix))


def is_resumable(path: Path) -> bool:
    """Return whether a checkpoint still has its optimizer, which a resumed run needs."""
    return any(name.startswith("optimizer") for name in read_manifest(path))


def choose_checkpoint(run: Path) -> tuple[Path | None, list[str]]:
    """Return the newest whole checkpoint (None if nothing was saved yet) and a note on each that is damaged.

    Damaged ones are renamed, so that nothing mistakes them for whole, and kept for inspection.
    """
    found, problems = find_checkpoints(run), find_damage(run)
    whole = [path for path in found if path not in problems and is_resumable(path)]
    if found and not whole:
        raise problems.get(found[-1]) or damage_error(found[-1], "no optimizer")
    for path in problems:
        set_aside(path)
    notes = [
        f"left out {describe_damage(error)}; it is now {DAMAGED_PREFIX}{path.name}" for path, error in problems.items()
    ]
    return (whole[-1] if whole else None), notes


def find_damage(run: Path) -> dict[Path, DamageError]:
    """Return the damaged checkpoints of a run, and what is wrong with each."""
    problems = {}
    for path in find_checkpoints(run):
        try:
            verify_checkpoint(path)
        except DamageError as error:
            problems[path] = error
    return problems


def describe_damage(error: DamageError) -> str:
    """Return what is damaged, without the fix."""
    return str(error).removeprefix("checkpoint: got ").partition(", expected ")[0]


def set_aside(path: Path) -> None:
    """Rename a damaged checkpoint."""
    target = path.with_name(f"{DAMAGED_PREFIX}{path.name}")
    if target.exists():
        remove_folder(target)
    path.rename(target)
    sync_folder(path.parent)


def read_state(path: Path) -> dict[str, Any]:
    """Return the state of a checkpoint: progress, and how long the metrics file was. Raise if it is damaged."""
    try:
        state = read_json(path / "state.json")
    except (OSError, ValueError):
        raise damage_error(path, "no readable state.json") from None
    absent = [name for name in STATE_FIELDS if name not in state]
    if absent:
        raise damage_error(path, f"a state.json without {', '.join(absent)}")
    try:
        Progress.from_json(state["progress"])
        if state.get("taken"):
            StepResult(**state["taken"])
    except (TypeError, ValueError, KeyError):
        raise damage_error(path, "a state.json whose progress has other fields") from None
    return state


def read_states(run: Path) -> dict[Path, dict[str, Any]]:
    """Return the states of the checkpoints, oldest first; damaged ones are skipped."""
    states = {}
    for path in find_checkpoints(run):
        with contextlib.suppress(DamageError):
            states[path] = read_state(path)
    return states


def read_tensors(path: Path, what: str) -> dict[str, Tensor]:
    """Return the `weights` or `optimizer` tensors of a checkpoint, sharded or not."""
    if (path / what).is_dir():
        # Here and not above: importing torch's distributed checkpoints takes 0.7 s that most runs never need.
        from regard.training.shards import gather_shards

        return gather_shards(path / what)
    return read_safetensors(path / f"{what}.safetensors")


def rank_checkpoints(run: Path, goal: Goal) -> list[Path]:
    """Return the evaluated checkpoints, best first; of equal ones the lower loss, then the later step, is better."""
    sign = -1.0 if goal.better == "higher" else 1.0

    def rank(path: Path) -> tuple[float, float, int]:
        loss = evaluated[path].get("loss")
        return sign * evaluated[path]["metric"], math.inf if loss is None else loss, -int(path.name)

    states = {path: state["progress"] for path, state in read_states(run).items()}
    evaluated = {path: progress for path, progress in states.items() if progress.get("metric") is not None}
    return sorted(evaluated, key=rank)


def prune(run: Path, keep: int, goal: Goal) -> None:
    """Delete all but the last `keep`, the best `keep` and the newest; drop the optimizer of old ones.

    A checkpoint that was not due (an interruption, the clock) is deleted when a due one follows it: which ones
    are kept must not depend on whether the run was interrupted.
    """
    states = read_states(run)
    existing = list(states)
    due = [path for path in existing if states[path]["due"]]
    kept = {*due[-keep:], *rank_checkpoints(run, goal)[:keep], *existing[-1:]}
    for path in existing:
        if path not in kept:
            remove_folder(path)
    for path in [path for path in existing if path in kept][:-RESUMABLE_CHECKPOINTS]:
        with contextlib.suppress(DamageError):
            drop_optimizer(path)


def drop_optimizer(path: Path) -> None:
    """Delete the optimizer, first from the manifest, so that a checkpoint never lists a file that it has not."""
    files = read_manifest(path)
    rest = {name: value for name, value in files.items() if not name.startswith("optimizer")}
    if rest != files:
        replace_file(path / "manifest.json", json.dumps({"format": FORMAT, "files": rest}, indent=1).encode())
    (path / "optimizer.safetensors").unlink(missing_ok=True)
    if (path / "optimizer").is_dir():
        remove_folder(path / "optimizer")
    for left_over in path.glob(f"{DELETING_PREFIX}*"):
        shutil.rmtree(left_over)
