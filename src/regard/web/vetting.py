"""A run folder is looked at before it is opened: what it asks for must be what it holds.

A configuration can ask for a model of any size, and building it would take that memory before the weights are even
read. So sizes are compared on a model without memory, and every file is inside the folder and of a bearable size.
"""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from regard.errors import wrong
from regard.models import ModelConfig, build
from regard.tasks.predicting import WEIGHTS
from regard.training.folder import how_to_go_on
from regard.training.tensors import distinct
from regard.web.answers import refuse

TEXT = 2**20  # bytes of a configuration
WORDS = 2**26  # bytes of a vocabulary
NUMBER = 2**20  # largest number in the configuration of a model
DEPTH = 256  # blocks of a stack


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
    for path in (run / "vocabulary").glob("*"):
        inside(run, f"vocabulary/{path.name}", WORDS)


def vet_weights(run: Path, config: ModelConfig, words: tuple[int, int], most: int) -> None:
    """The weights are of the model that the configuration describes, and not more than `most` bytes."""
    path = inside(run, WEIGHTS, most)
    if not path.is_file():
        raise refuse(409, "run", "no weights yet", "at least one checkpoint", f"wait, or: {how_to_go_on(run)}")
    vet_numbers(config, "model.")
    with torch.device("meta"):
        model = build(config, source=words[0], target=words[1])
    held = shapes_of(path)
    for name, tensor in distinct(model).items():
        if held.get(name) != tuple(tensor.shape):
            got = f"{name} of shape {held.get(name, '(none)')} in {WEIGHTS}"
            raise wrong("run", got, f"{tuple(tensor.shape)}, as config.toml says", "restore both from one run")


def vet_numbers(config: Any, path: str) -> None:
    """No number is so large that only building would tell."""
    for entry in fields(config):
        value, name = getattr(config, entry.name), path + entry.name
        if is_dataclass(value):
            vet_numbers(value, f"{name}.")
        elif isinstance(value, int) and value > (DEPTH if entry.name.endswith("layers") else NUMBER):
            raise wrong(name, value, f"at most {DEPTH if entry.name.endswith('layers') else NUMBER:,}", "check the run")


def shapes_of(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes in the header of a safetensors file; no tensor is read."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        fix = "restore it from a copy"
        raise wrong("run", f"{path.name} ({str(error)[:200]})", "a whole safetensors file", fix) from None
