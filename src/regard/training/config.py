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

from regard.bounds import most
from regard.errors import InputError, wrong
from regard.training.storage import read_text
from regard.training.toml import NOTHING

Config = TypeVar("Config")
DOTS = most("run folder", "config dots")
QUOTED = re.compile(r"""\"[^"\n]*\"|'[^'\n]*'""")


def configure(base: Config, file: Path | None = None, overrides: Mapping[str, object] | None = None) -> Config:
    """`base` (a preset) with the fields that a TOML file names, then those of `overrides`.

    `overrides` has dotted names, as flags do: `{"model.heads": "8"}`. Text is read as the field's type.
    """
    values = dict(flattened(read_toml(file))) if file else {}
    values |= overrides or {}
    known = dict(leaves(base))
    for name, value in values.items():
        if name not in known:
            raise unknown_key(base, name, value)
    new: Config = changed(base, "", values)
    return new


def read_toml(file: Path) -> dict[str, Any]:
    """The tables of a file, or one sentence about what is wrong with it."""
    try:
        return parse_toml(read_text(file))
    except FileNotFoundError:
        raise wrong("config", f"no file {file}", "a TOML file", "check the path") from None
    except OSError as error:
        raise wrong("config", f"{file} ({error.strerror})", "a TOML file", "check the path") from None
    except ValueError as error:
        raise wrong("config", f"{file} ({error})", "a TOML file", "correct that place") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a text; ValueError where it is damaged, also where it is nested too deep to be read."""
    found = find_crowded_line(text)
    if found:
        raise ValueError(f"{found[1]:,} dots in line {found[0]}, at most {DOTS} are read")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def find_crowded_line(text: str) -> tuple[int, int] | None:
    """The first line with a key of very many parts, and its dots. What stands in quotation marks does not count."""
    for number, line in enumerate(QUOTED.sub("", text).splitlines(), start=1):
        if line.count(".") > DOTS:
            return number, line.count(".")
    return None


def flattened(tables: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    """Nested tables as dotted names."""
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{path}{name}.")
        else:
            yield path + name, value


def leaves(config: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """Every field that holds a value, by its dotted name."""
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            yield from leaves(value, f"{path}{entry.name}.")
        else:
            yield path + entry.name, value


def differences(before: Any, after: Any) -> dict[str, tuple[object, object]]:
    """The fields whose values differ, by dotted name."""
    old, new = dict(leaves(before)), dict(leaves(after))
    return {name: (old.get(name), new.get(name)) for name in old | new if old.get(name) != new.get(name)}


def changed(config: Any, path: str, values: Mapping[str, object]) -> Any:
    """A copy in which the fields named in `values` are replaced."""
    hints = get_type_hints(type(config))
    new = {}
    for entry in fields(config):
        name, old = path + entry.name, getattr(config, entry.name)
        if is_dataclass(old):
            new[entry.name] = changed(old, f"{name}.", values)
        else:
            new[entry.name] = understood(name, values[name], hints[entry.name], old) if name in values else old
    try:
        return type(config)(**new)
    except InputError as error:
        # A dataclass that checks itself knows its field, not where it lies in the whole.
        raise InputError(f"{path}{error}") from None


def understood(name: str, value: object, hint: Any, old: object) -> object:
    """`value` as the type `hint` wants it."""
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if type(None) in choices and value in (None, NOTHING):
        return None
    for choice in choices:
        try:
            return converted(value, choice)
        except (ValueError, TypeError):
            continue
    expected = " or ".join(described(choice) for choice in choices)
    raise wrong(name, repr(value), expected, f"write a value such as {suggestion(old, choices)}")


def converted(value: Any, kind: Any) -> object:
    """`value` as `kind`; raises ValueError or TypeError where that would lose or invent something."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return next(choice for choice in arguments if choice == value) if value in arguments else refuse()
    if origin is tuple:
        return converted_items(value, arguments)
    if kind is bool:
        words = {"true": True, "false": False}
        return value if isinstance(value, bool) else words[value] if value in words else refuse()
    if isinstance(value, bool):
        refuse()
    if kind is Path:
        return Path(value)
    if kind is str:
        return value if isinstance(value, str) else refuse()
    if kind is int and isinstance(value, float):
        refuse()  # 2.5 heads must not become 2
    number = kind(value) if kind in (int, float) else refuse()
    return number if kind is int or isfinite(number) else refuse()


def converted_items(value: Any, kinds: tuple[Any, ...]) -> tuple[object, ...]:
    """A list, or text with commas, as a tuple."""
    items = [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else list(value)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(items)
    return tuple(converted(item, kind) for item, kind in zip(items, kinds, strict=True))


def refuse() -> Any:
    raise ValueError


def described(kind: Any) -> str:
    """A type in words."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return "a list"
    return {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
        Path: "a path",
        type(None): "none",
    }.get(kind, str(kind))


def suggestion(old: object, choices: tuple[Any, ...]) -> object:
    """A value that would do: the present one, or the first that the type allows."""
    if old is not None:
        return old
    first = next(choice for choice in choices if choice is not type(None))
    return get_args(first)[0] if get_origin(first) is Literal else {int: 1, float: 0.5, str: "text"}.get(first, NOTHING)


def unknown_key(config: Any, name: str, value: object) -> InputError:
    """What to say about a name that is not in the configuration."""
    parts, section, path = name.split("."), config, ""
    while len(parts) > 1 and is_dataclass(getattr(section, parts[0], None)):
        path += parts[0] + "."
        section = getattr(section, parts.pop(0))
    siblings = sorted(entry.name for entry in fields(section))
    inside = getattr(section, ".".join(parts), None)
    if is_dataclass(inside):
        names = sorted(entry.name for entry in fields(inside))
        return wrong(name, value, f"a table of {', '.join(names)}", f"write {name}.{names[0]}")
    return wrong(name, value, f"one of {', '.join(siblings)}", f"write {nearest(config, name)}")


def nearest(config: Any, name: str) -> str:
    """The dotted name that was probably meant: the same last word elsewhere, or the closest spelling."""
    names = [known for known, _ in leaves(config)]
    path, _, last = name.rpartition(".")
    same_word = [known for known in names if known.rpartition(".")[2] == last]
    if same_word:
        return max(same_word, key=lambda known: SequenceMatcher(None, known, name).ratio())
    beside = {known.rpartition(".")[2]: known for known in names if known.rpartition(".")[0] == path}
    close = get_close_matches(last, beside, n=1, cutoff=0.5)
    return beside[close[0]] if close else get_close_matches(name, names, n=1, cutoff=0.0)[0]
