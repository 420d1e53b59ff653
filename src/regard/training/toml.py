"""Nested dataclasses as TOML text. The standard library reads TOML (`tomllib`) but does not write it."""

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from regard.errors import wrong_kind

NOTHING = "none"  # TOML has no null; a field that may be empty is written as this word and read back as None


def to_toml(config: Any) -> str:
    """Return the whole of a dataclass, every field written out, so that the text does not depend on defaults.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Model:
    ...     heads: int = 8
    >>> @dataclass
    ... class Run:
    ...     name: str
    ...     model: Model
    >>> print(to_toml(Run("b", Model())))
    name = "b"
    <BLANKLINE>
    [model]
    heads = 8
    <BLANKLINE>
    """
    return "\n".join(format_table(config, "")) + "\n"


def format_table(config: Any, path: str) -> Iterator[str]:
    """Yield the lines of one table: plain values first, because TOML gives what follows a header to that header."""
    values = [(entry.name, getattr(config, entry.name)) for entry in fields(config)]
    if path:
        yield f"[{path}]"
    for name, value in values:
        if not is_dataclass(value):
            yield f"{name} = {format_value(value)}"
    for name, value in values:
        if is_dataclass(value):
            yield ""
            yield from format_table(value, f"{path}.{name}" if path else name)


def format_value(value: object) -> str:
    """Return one TOML value."""
    match value:
        case None:
            return f'"{NOTHING}"'
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)  # shortest text that reads back to the same bits; inf and nan are TOML's words too
        case str() | Path():
            # JSON escapes what TOML wants escaped, but for DEL.
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return "[" + ", ".join(format_value(item) for item in value) + "]"
    raise wrong_kind("config", type(value).__name__, "a number, text, path, list or dataclass", "convert it first")
