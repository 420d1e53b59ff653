"""A run folder is looked at before it is opened: what it asks for must be what it holds.

A configuration can ask for anything. So every number in it is bearable, every file is inside the folder and of a
bearable size, and `regard.tasks.predicting` compares the model with the weights before it takes memory for it.
"""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from regard.errors import wrong
from regard.tasks.predicting import WEIGHTS
from regard.training.folder import how_to_go_on
from regard.web.answers import refuse

TEXT = 2**20  # bytes of a configuration
WORDS = 2**26  # bytes of a vocabulary
NUMBER = 2**20  # largest number of a configuration
NUMBERS = {"layers": 256, "hops": 256, "pixels": 2048, "rate": 192_000, "window": 1000, "hop": 1000}  # and of these


def inside(run: Path, name: str, most: int) -> Path:
    """A file of the folder that is really in it and not larger than that."""
    path = (run / name).resolve()
    if not path.is_relative_to(run.resolve()):
        raise refuse(403, "run", f"{name}, which leads out of its folder", "a file in it", "copy the file into it")
    if path.is_file() and path.stat().st_size > most:
        raise wrong("run", f"{name} of {path.stat().st_size:,} bytes", f"at most {most:,}", "check the folder")
    return path


def vet_texts(run: Path) -> None:
    """The small files, before anything is read from them."""
    for name in ("versions.json", "config.toml"):
        inside(run, name, TEXT)
    for path in (*run.iterdir(), *(run / "vocabulary").glob("*")):
        if path.suffix not in (".safetensors", ".jsonl") and not path.is_dir():
            inside(run, str(path.relative_to(run)), WORDS)


def vet_model(run: Path, config: Any, most: int) -> None:
    """There are weights of not more than `most` bytes, and no number is so large that only building would tell."""
    if not inside(run, WEIGHTS, most).is_file():
        raise refuse(409, "run", "no weights yet", "at least one checkpoint", f"wait, or: {how_to_go_on(run)}")
    for entry in fields(config):
        if entry.name != "training":
            vet_numbers(getattr(config, entry.name), entry.name)


def vet_numbers(value: Any, name: str) -> None:
    """No number in it is too large."""
    if is_dataclass(value):
        for entry in fields(value):
            vet_numbers(getattr(value, entry.name), f"{name}.{entry.name}")
    elif isinstance(value, int | float):
        most = next((most for end, most in NUMBERS.items() if name.endswith(end)), NUMBER)
        if value > most:
            raise wrong(name, value, f"at most {most:,}", "check the run")
