"""Layers, encoders, decoders, searches, presets and tasks: the catalog beside the parts of attention.

The table is `inventory.toml`. What an entry is in English is its docstring.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class InventoryEntry(NamedTuple):
    """Where a thing is (`module:name`), one line of Chinese, and other names for it, separated by blanks."""

    target: str
    chinese: str
    aliases: str


FAMILIES: Mapping[str, Mapping[str, InventoryEntry]] = {
    family: {name: InventoryEntry(*row) for name, row in entries.items()}
    for family, entries in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
