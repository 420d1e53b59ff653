"""From what was typed to the configuration of a new translator."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.errors import wrong
from regard.tasks.configuration import make_path_absolute
from regard.tasks.translation.config import TranslationConfig, apply_changes, configure_text
from regard.tasks.translation.presets import build_preset as preset_of

DATA = """TEXT is numbers or dates (embedded, endless), a folder with train.en, train.de, …, a table with a
tab between sentence and translation, or two aligned files; plain or gzip, UTF-8."""


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> TranslationConfig:
    """The preset for this text, with other values for some fields."""
    values = dict(values)
    if len(data) > 2:
        fix = "name the file of the sentences, then that of the translations"
        raise wrong("text", f"{len(data)} names", "a name, or two aligned files", fix)
    if data:
        values["data.text"] = ",".join(map(make_text_path_absolute, data))
    return apply_changes(preset_of(preset, configure_text(values)), values)


def make_text_path_absolute(name: str) -> str:
    """The same as a path that lasts, unless that has a comma: one stands between two files."""
    path = make_path_absolute(name)
    return name if "," in path else path
