"""A configuration is a frozen dataclass of frozen dataclasses; files and flags change single fields of it."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import SequenceMatcher, get_close_matches
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from regard.datasets.bounds import get_bound
from regard.datasets.plain_files import read_text
from regard.datasets.text import shorten
from regard.errors import InputError, wrong
from regard.training.config_bounds import check_number
from regard.training.toml import NOTHING

Config = TypeVar("Config")
TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path",
              type(None): "none"}  # fmt: skip
TEXT = get_bound("run folder", "config bytes")
DOTS = get_bound("run folder", "config dots")
QUOTED = re.compile(r"""\"[^"\n]*\"|'[^'\n]*'""")


def configure(base: Config, file: Path | None = None, overrides: Mapping[str, object] | None = None) -> Config:
    """Return `base` (a preset) with the fields that a TOML file names, then those of `overrides`.

    `overrides` has dotted names, as flags do: `{"model.heads": "8"}`. Text is parsed as the field's type.
    """
    values = dict(flatten_tables(read_toml(file))) if file else {}
    values |= overrides or {}
    known = dict(walk_fields(base))
    for name, value in values.items():
        if name not in known:
            raise unknown_field_error(base, name, value)
    new: Config = replace_fields(base, "", values)
    for name, value in walk_fields(new):
        if name in values:
            check_number(name, value)
    return new


def read_toml(file: Path) -> dict[str, Any]:
    """Return the tables of a file; raise in one sentence if it cannot be read."""
    try:
        return parse_toml(read_text(file, TEXT))
    except FileNotFoundError:
        raise wrong("config", f"no file {file}", "a TOML file", "check the path") from None
    except OSError as error:
        raise wrong("config", f"{file} ({error.strerror})", "a TOML file", "check the path") from None
    except ValueError as error:
        raise wrong("config", f"{file} ({error})", "a TOML file", "correct that place") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a text; raise ValueError if it is damaged, or nested too deep to be read."""
    found = find_crowded_line(text)
    if found:
        raise ValueError(f"{found[1]:,} dots in line {found[0]}, at most {DOTS} are read")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def find_crowded_line(text: str) -> tuple[int, int] | None:
    """Return the first line with a key of very many parts, and its dots. Text in quotation marks does not count."""
    for number, line in enumerate(QUOTED.sub("", text).splitlines(), start=1):
        if line.count(".") > DOTS:
            return number, line.count(".")
    return None


def flatten_tables(tables: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values of nested tables by dotted name."""
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from flatten_tables(value, f"{path}{name}.")
        else:
            yield path + name, value


def walk_fields(config: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every field that holds a value, by its dotted name."""
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            yield from walk_fields(value, f"{path}{entry.name}.")
        else:
            yield path + entry.name, value


def compare_configs(before: Any, after: Any) -> dict[str, tuple[object, object]]:
    """Return the fields whose values differ, by dotted name."""
    old, new = dict(walk_fields(before)), dict(walk_fields(after))
    return {name: (old.get(name), new.get(name)) for name in old | new if old.get(name) != new.get(name)}


def replace_fields(config: Any, path: str, values: Mapping[str, object]) -> Any:
    """Return a copy in which the fields named in `values` are replaced."""
    hints = get_type_hints(type(config))
    new = {}
    for entry in fields(config):
        name, old = path + entry.name, getattr(config, entry.name)
        if is_dataclass(old):
            new[entry.name] = replace_fields(old, f"{name}.", values)
        else:
            new[entry.name] = parse_value(name, values[name], hints[entry.name], old) if name in values else old
    try:
        return type(config)(**new)
    except InputError as error:
        # A dataclass that checks itself knows its field, not where it lies in the whole.
        raise InputError(f"{path}{error}") from None


def parse_value(name: str, value: object, hint: Any, old: object) -> object:
    """Return `value` as the type `hint`; raise if it is none."""
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if type(None) in choices and value in (None, NOTHING):
        return None
    for choice in choices:
        try:
            return convert(value, choice)
        except (ValueError, TypeError, OverflowError):
            continue
    expected = " or ".join(describe_type(choice) for choice in choices)
    raise wrong(name, shorten(repr(value)), expected, f"write a value such as {suggest_value(old, choices)}")


def convert(value: Any, kind: Any) -> object:
    """Return `value` as `kind`; raise ValueError or TypeError if that would lose or invent something."""
    if get_origin(kind) is Literal:
        return get_args(kind)[get_args(kind).index(value)]
    if get_origin(kind) is tuple:
        return convert_items(value, get_args(kind))
    if kind is bool:
        return value if isinstance(value, bool) else bool(("false", "true").index(value))
    if isinstance(value, bool):
        raise ValueError
    if kind is Path:
        return Path(value)
    if kind is str and isinstance(value, str):
        return value
    if kind not in (int, float) or (kind is int and isinstance(value, float)):
        raise ValueError  # 2.5 heads must not become 2
    number = kind(value)
    if kind is float and not isfinite(number):
        raise ValueError
    return number


def convert_items(value: Any, kinds: tuple[Any, ...]) -> tuple[object, ...]:
    """Return a list, or text with commas, as a tuple."""
    items = [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else list(value)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(items)
    return tuple(convert(item, kind) for item, kind in zip(items, kinds, strict=True))


def describe_type(kind: Any) -> str:
    """Return a type in words."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return "a list"
    return TYPE_NAMES.get(kind, str(kind))


def suggest_value(old: object, choices: tuple[Any, ...]) -> object:
    """Return an example of a valid value: the present one, or the first that the type allows."""
    if old is not None:
        return old
    first = next(choice for choice in choices if choice is not type(None))
    return get_args(first)[0] if get_origin(first) is Literal else {int: 1, float: 0.5, str: "text"}.get(first, NOTHING)


def unknown_field_error(config: Any, name: str, value: object) -> InputError:
    """Return the error of a name that is not in the configuration."""
    parts, section, path = name.split("."), config, ""
    while len(parts) > 1 and is_dataclass(getattr(section, parts[0], None)):
        path += parts[0] + "."
        section = getattr(section, parts.pop(0))
    siblings = sorted(entry.name for entry in fields(section))
    inside = getattr(section, ".".join(parts), None)
    if is_dataclass(inside):
        names = sorted(entry.name for entry in fields(inside))
        return wrong(name, value, f"a table of {', '.join(names)}", f"write {name}.{names[0]}")
    return wrong(name, value, f"one of {', '.join(siblings)}", f"write {find_nearest_field(config, name)}")


def find_nearest_field(config: Any, name: str) -> str:
    """Return the dotted name that was probably meant: the same last word elsewhere, or the closest spelling."""
    names = [known for known, _ in walk_fields(config)]
    path, _, last = name.rpartition(".")
    same_word = [known for known in names if known.rpartition(".")[2] == last]
    if same_word:
        return max(same_word, key=lambda known: SequenceMatcher(None, known, name).ratio())
    beside = {known.rpartition(".")[2]: known for known in names if known.rpartition(".")[0] == path}
    close = get_close_matches(last, beside, n=1, cutoff=0.5)
    return beside[close[0]] if close else get_close_matches(name, names, n=1, cutoff=0.0)[0]
