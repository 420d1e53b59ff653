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

from regard.errors import InputError, sentence, wrong
from regard.training.progress import Progress, Taken
from regard.training.storage import DELETING, digest, read_json, remove, replace, settle, write
from regard.training.task import Goal
from regard.training.tensors import unpack

FORMAT = 1
FULL = 2  # so many of the newest keep their optimizer: one to go on from, one should that one be damaged
TEMPORARY = ".saving-"
DAMAGED = "damaged-"
FIELDS = ("progress", "metrics_bytes", "due")


class DamageError(InputError):
    """A checkpoint that is not as it was written."""


def checkpoints(run: Path) -> list[Path]:
    """Every checkpoint of a run, oldest first."""
    folder = run / "checkpoints"
    names = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in names if path.name.isdigit() and path.is_dir())


def path_of(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"{step:09d}"


def begin(run: Path, step: int) -> Path:
    """A new folder to fill. Its name is not that of a checkpoint, so it is never taken for one."""
    folder = run / "checkpoints"
    folder.mkdir(exist_ok=True)
    sweep(run)
    temporary = folder / f"{TEMPORARY}{step:09d}"
    temporary.mkdir()
    return temporary


def sweep(run: Path) -> None:
    """Removes what a process left that was killed while it wrote or deleted a checkpoint."""
    for kind in (TEMPORARY, DELETING):
        for left_over in (run / "checkpoints").glob(f"{kind}*"):
            shutil.rmtree(left_over)


def seal(temporary: Path, state: Mapping[str, Any]) -> Path:
    """Lists what `begin`'s folder holds, forces it to the disk and makes it a checkpoint."""
    write(temporary / "state.json", json.dumps(state, indent=1).encode())
    files = [path for path in sorted(temporary.rglob("*")) if path.is_file()]
    listed = {str(path.relative_to(temporary)): entry(path) for path in files}
    write(temporary / "manifest.json", json.dumps({"format": FORMAT, "files": listed}, indent=1).encode())
    for folder in {path.parent for path in files} | {temporary}:
        settle(folder)
    final = temporary.with_name(temporary.name.removeprefix(TEMPORARY))
    if final.exists():
        remove(final)  # one that an error had cut short at the same step
    temporary.rename(final)
    settle(final.parent)
    return final


def entry(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": digest(path)}


def manifest(path: Path) -> dict[str, Any]:
    """What a checkpoint says it holds."""
    try:
        content = read_json(path / "manifest.json")
        files, version = dict(content["files"]), content["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise damaged(path, "no readable manifest.json") from None
    if version != FORMAT:
        fix = "use the version of regard that wrote it, or start a new run"
        raise wrong("checkpoint", f"{path} of format {version}", f"format {FORMAT}", fix)
    return files


def verify(path: Path) -> None:
    """Raises unless every file is as it was written and nothing that is needed is missing."""
    files = manifest(path)
    for name, expected in files.items():
        file = path / name
        if not file.is_file():
            raise damaged(path, f"no {name}")
        if entry(file) != expected:
            raise damaged(path, f"a {name} that is not the one written (its sha256 differs)")
    if not any(name.startswith("weights") for name in files):
        raise damaged(path, "no weights in its manifest.json")
    read_state(path)


def damaged(path: Path, what: str) -> DamageError:
    """The sentence for a checkpoint that cannot be used, where no other can take its place."""
    fix = "restore that folder from a copy, or start a new run"
    return DamageError(sentence("checkpoint", f"{path} with {what}", "a whole checkpoint", fix))


def can_be_resumed(path: Path) -> bool:
    """Whether a checkpoint still has its optimizer: a run goes on exactly from no other."""
    return any(name.startswith("optimizer") for name in manifest(path))


def choose_checkpoint(run: Path) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint, none if the run never came so far, and a note on each that is damaged.

    Damaged ones get another name, so that nothing takes them for whole. They are left to whoever wants to look.
    """
    found, problems = checkpoints(run), find_damage(run)
    whole = [path for path in found if path not in problems and can_be_resumed(path)]
    if found and not whole:
        raise problems.get(found[-1]) or damaged(found[-1], "no optimizer")
    for path in problems:
        set_aside(path)
    notes = [f"left out {problem_of(error)}; it is now {DAMAGED}{path.name}" for path, error in problems.items()]
    return (whole[-1] if whole else None), notes


def find_damage(run: Path) -> dict[Path, DamageError]:
    """The damaged checkpoints of a run, and what is wrong with each."""
    problems = {}
    for path in checkpoints(run):
        try:
            verify(path)
        except DamageError as error:
            problems[path] = error
    return problems


def problem_of(error: DamageError) -> str:
    """What is wrong, without what to do about it."""
    return str(error).removeprefix("checkpoint: got ").partition(", expected ")[0]


def set_aside(path: Path) -> None:
    """Gives a damaged checkpoint another name."""
    target = path.with_name(f"{DAMAGED}{path.name}")
    if target.exists():
        remove(target)
    path.rename(target)
    settle(path.parent)


def read_state(path: Path) -> dict[str, Any]:
    """The small facts of a checkpoint: progress, and how long the metrics file was."""
    try:
        state = read_json(path / "state.json")
    except (OSError, ValueError):
        raise damaged(path, "no readable state.json") from None
    absent = [name for name in FIELDS if name not in state]
    if absent:
        raise damaged(path, f"a state.json without {', '.join(absent)}")
    try:
        Progress.from_json(state["progress"])
        if state.get("taken"):
            Taken(**state["taken"])
    except (TypeError, ValueError, KeyError):
        raise damaged(path, "a state.json whose progress has other fields") from None
    return state


def readable_states(run: Path) -> dict[Path, dict[str, Any]]:
    """The states of the checkpoints, oldest first. One that somebody spoilt since the start is left alone."""
    states = {}
    for path in checkpoints(run):
        with contextlib.suppress(DamageError):
            states[path] = read_state(path)
    return states


def read_tensors(path: Path, what: str) -> dict[str, Tensor]:
    """The `weights` or `optimizer` tensors of a checkpoint, whole, however they were written."""
    if (path / what).is_dir():
        # Here and not above: importing torch's distributed checkpoints takes 0.7 s that most runs never need.
        from regard.training.sharding import gathered

        return gathered(path / what)
    return unpack(path / f"{what}.safetensors")


def best_first(run: Path, goal: Goal) -> list[Path]:
    """The checkpoints that were evaluated, the best first; of equals that with the lower loss, then the later."""
    sign = -1.0 if goal.better == "higher" else 1.0

    def rank(path: Path) -> tuple[float, float, int]:
        loss = evaluated[path].get("loss")
        return sign * evaluated[path]["metric"], math.inf if loss is None else loss, -int(path.name)

    states = {path: state["progress"] for path, state in readable_states(run).items()}
    evaluated = {path: progress for path, progress in states.items() if progress.get("metric") is not None}
    return sorted(evaluated, key=rank)


def prune(run: Path, keep: int, goal: Goal) -> None:
    """Keeps the last `keep`, the best `keep` and the newest; of old ones only the weights.

    A checkpoint that was not due (an interruption, the clock) goes when a due one follows it: which ones are
    kept must not depend on whether the run was interrupted.
    """
    states = readable_states(run)
    existing = list(states)
    due = [path for path in existing if states[path]["due"]]
    kept = {*due[-keep:], *best_first(run, goal)[:keep], *existing[-1:]}
    for path in existing:
        if path not in kept:
            remove(path)
    for path in [path for path in existing if path in kept][:-FULL]:
        with contextlib.suppress(DamageError):
            slim(path)


def slim(path: Path) -> None:
    """Drops the optimizer: from the list first, so that a checkpoint never misses what it lists."""
    files = manifest(path)
    rest = {name: value for name, value in files.items() if not name.startswith("optimizer")}
    if rest != files:
        replace(path / "manifest.json", json.dumps({"format": FORMAT, "files": rest}, indent=1).encode())
    (path / "optimizer.safetensors").unlink(missing_ok=True)
    if (path / "optimizer").is_dir():
        remove(path / "optimizer")
    for left_over in path.glob(f"{DELETING}*"):
        shutil.rmtree(left_over)
