"""Checkpoints: folders that appear whole, by one rename, with the sha256 of every file in them.

    checkpoints/000000120/   weights.safetensors  optimizer.safetensors  state.json  manifest.json

Sharded ones have folders `weights/` and `optimizer/` instead, with a file for each process.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.errors import InputError, wrong
from regard.training.storage import digest, replace, settle, write
from regard.training.task import Goal
from regard.training.tensors import unpack

FORMAT = 1
FULL = 2  # so many of the newest keep their optimizer: one to go on from, one should that one be damaged
TEMPORARY = ".saving-"


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
    for left_over in folder.glob(f"{TEMPORARY}*"):
        shutil.rmtree(left_over)
    temporary = folder / f"{TEMPORARY}{step:09d}"
    temporary.mkdir()
    return temporary


def seal(temporary: Path, state: Mapping[str, Any]) -> Path:
    """Lists what `begin`'s folder holds, forces it to the disk and makes it a checkpoint."""
    write(temporary / "state.json", json.dumps(state, indent=1).encode())
    files = [path for path in sorted(temporary.rglob("*")) if path.is_file()]
    listed = {str(path.relative_to(temporary)): entry(path) for path in files}
    write(temporary / "manifest.json", json.dumps({"format": FORMAT, "files": listed}, indent=1).encode())
    for folder in {path.parent for path in files} | {temporary}:
        settle(folder)
    final = temporary.with_name(temporary.name.removeprefix(TEMPORARY))
    temporary.rename(final)
    settle(final.parent)
    return final


def entry(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": digest(path)}


def manifest(path: Path) -> dict[str, Any]:
    """What a checkpoint says it holds."""
    try:
        content = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        files, version = content["files"], content["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise damaged(path, "no readable manifest.json") from None
    if version != FORMAT:
        fix = "use the version of regard that wrote it, or start a new run"
        raise wrong("checkpoint", f"{path} of format {version}", f"format {FORMAT}", fix)
    return dict(files)


def verify(path: Path) -> None:
    """Raises unless every file is as it was written."""
    for name, expected in manifest(path).items():
        file = path / name
        if not file.is_file():
            raise damaged(path, f"no {name}")
        if entry(file) != expected:
            raise damaged(path, f"a {name} that is not the one written (its sha256 differs)")


def damaged(path: Path, what: str) -> InputError:
    older = [other.name for other in checkpoints(path.parent.parent) if other.name < path.name]
    fix = f"remove that folder to go on from {older[-1]}" if older else "remove that folder and start again"
    return wrong("checkpoint", f"{path} with {what}", "a whole checkpoint", fix)


def read_state(path: Path) -> dict[str, Any]:
    """The small facts of a checkpoint: progress, and how long the metrics file was."""
    try:
        return dict(json.loads((path / "state.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        raise damaged(path, "no readable state.json") from None


def read_tensors(path: Path, what: str) -> dict[str, Tensor]:
    """The `weights` or `optimizer` tensors of a checkpoint, whole, however they were written."""
    if (path / what).is_dir():
        # Here and not above: importing torch's distributed checkpoints takes 0.7 s that most runs never need.
        from regard.training.sharding import gathered

        return gathered(path / what)
    return unpack(path / f"{what}.safetensors")


def best_first(run: Path, goal: Goal) -> list[Path]:
    """The checkpoints that were evaluated, the best first, of equals the earlier."""
    sign = -1.0 if goal.better == "higher" else 1.0
    values = {path: read_state(path)["progress"]["metric"] for path in checkpoints(run)}
    return sorted((path for path in values if values[path] is not None), key=lambda path: sign * values[path])


def prune(run: Path, keep: int, goal: Goal) -> None:
    """Keeps the last `keep`, the best `keep` and the newest; of old ones only the weights.

    A checkpoint that was not due (an interruption, the clock) goes when a due one follows it: which ones are
    kept must not depend on whether the run was interrupted.
    """
    existing = checkpoints(run)
    due = [path for path in existing if read_state(path)["due"]]
    kept = {*due[-keep:], *best_first(run, goal)[:keep], *existing[-1:]}
    for path in existing:
        if path not in kept:
            shutil.rmtree(path)
    for path in checkpoints(run)[:-FULL]:
        slim(path)


def slim(path: Path) -> None:
    """Drops the optimizer: from the list first, so that a checkpoint never misses what it lists."""
    files = manifest(path)
    extra = [name for name in files if name.startswith("optimizer")]
    if extra:
        rest = {name: value for name, value in files.items() if name not in extra}
        replace(path / "manifest.json", json.dumps({"format": FORMAT, "files": rest}, indent=1).encode())
        for name in extra:
            (path / name).unlink(missing_ok=True)
