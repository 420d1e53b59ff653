"""Configurations on the command line: every field is a flag, and the help is written from the fields."""

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from regard.errors import wrong

WORDS = ("true", "false")


class ParsedArguments(NamedTuple):
    """What was typed: names without a flag, the options of the command, and fields of its configuration."""

    names: tuple[str, ...]
    options: dict[str, str]
    fields: dict[str, str]


class Field(NamedTuple):
    """One value of a configuration: its dotted name and what its comment in the source says of it."""

    name: str
    value: object
    meaning: str


def parse_arguments(arguments: Sequence[str], options: Collection[str], switches: Collection[str]) -> ParsedArguments:
    """Split what was typed. A flag is followed by its value, or is `--name=value`; a switch may stand alone.

    >>> parse_arguments(["a", "--nproc", "2", "--model.heads=8", "--joint"], {"nproc"}, {"joint"})
    ParsedArguments(names=('a',), options={'nproc': '2'}, fields={'model.heads': '8', 'joint': 'true'})
    """
    given, rest = ParsedArguments((), {}, {}), list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            given = given._replace(names=(*given.names, word))
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not equals:
            value = take_value(name, rest, switches)
        (given.options if name in options else given.fields)[name] = value
    return given


def take_value(name: str, rest: list[str], switches: Collection[str]) -> str:
    """Take what follows a flag off the `rest`."""
    if name in switches:
        return rest.pop(0) if rest and rest[0] in WORDS else WORDS[0]
    if not rest or rest[0].startswith("--"):
        raise wrong(f"--{name}", "nothing after it", "a value", f"write --{name} followed by its value")
    return rest.pop(0)


def describe_fields(config: Any, path: str = "") -> Iterator[Field]:
    """Yield every field that holds a value, in the order of the source."""
    comments = read_comments(type(config))
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            yield from describe_fields(value, f"{path}{entry.name}.")
        else:
            yield Field(path + entry.name, value, comments.get(entry.name, ""))


def read_comments(section: type) -> Mapping[str, str]:
    """Return the comment behind each field, so that nothing is said twice."""
    found = re.findall(r"^    (\w+): [^#\n]*#\s*(.*)$", inspect.getsource(section), flags=re.MULTILINE)
    return dict(found)


def find_switches(config: Any) -> set[str]:
    """Return the fields that are true or false."""
    return {field.name for field in describe_fields(config) if isinstance(field.value, bool)}
