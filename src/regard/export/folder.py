"""Write a translator into a folder of its own, which appears whole, by one rename."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

from regard.errors import wrong
from regard.export.converter import to_ctranslate2
from regard.export.exported import write_facts
from regard.export.graphs import to_onnx
from regard.tasks.data import TextConfig, save_vocabularies
from regard.tasks.prediction import WEIGHTS
from regard.tasks.translation import TranslationConfig, Translator
from regard.tasks.translation.text import ENDLESS
from regard.training.run_folder import collect_versions
from regard.training.storage import create_atomically, wrap_storage_errors, write_file
from regard.training.tensors import collect_tensors, to_safetensors
from regard.training.toml import to_toml

Format = Literal["safetensors", "onnx", "ct2"]


def export(translator: Translator, folder: Path, form: Format = "safetensors") -> None:
    """Write a translator into a new folder."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise wrong("output", f"{folder}, which is there already", "a new folder", "give another one, or remove it")
    with wrap_storage_errors("output", folder), create_atomically(folder) as temporary:
        if form == "safetensors":
            write_run(translator, temporary, folder.name)
            return
        {"onnx": to_onnx, "ct2": to_ctranslate2}[form](translator, temporary)
        write_facts(translator, temporary, form)
        save_vocabularies(translator.vocabularies, temporary)


def write_run(translator: Translator, folder: Path, name: str) -> None:
    """Write a run folder of this name with all that commands need, except to resume."""
    folder.mkdir()
    save_vocabularies(translator.vocabularies, folder)
    write_file(folder / "config.toml", to_toml(make_portable(translator.config, name)).encode())
    write_file(folder / "versions.json", json.dumps(collect_versions(), indent=1).encode())
    write_file(folder / WEIGHTS, to_safetensors(collect_tensors(translator.model)))


def make_portable(config: TranslationConfig, name: str) -> TranslationConfig:
    """Return the settings without paths of this machine: files are named, and found where REGARD_DATA points."""
    training = replace(config.training, device="auto", folder=Path(name))
    return replace(config, data=strip_folders(config.data), training=training)


def strip_folders(text: TextConfig) -> TextConfig:
    """Return the settings with the names of files instead of their paths."""
    if text.text in ENDLESS:
        return text
    return replace(text, text=",".join(Path(part.strip()).name for part in text.text.split(",")))
