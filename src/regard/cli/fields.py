"""Configurations on the command line: every field is a flag, and the help is written from the fields."""

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, NamedTuple, get_args, get_origin

from regard.errors import wrong

WORDS = ("true", "false")


class ParsedArguments(NamedTuple):
    """The arguments of a command: names without a flag, its options, and fields of the configuration."""

    names: tuple[str, ...]
    options: dict[str, str]
    fields: dict[str, str]


class Field(NamedTuple):
    """One field of a configuration: its dotted name, its value, its comment in the source, and all that it may be."""

    name: str
    value: object
    meaning: str
    choices: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return what the field means, and what may be chosen."""
        choices = f"one of {', '.join(self.choices)}" if self.choices else ""
        return "; ".join(filter(None, (self.meaning, choices)))


def parse_arguments(arguments: Sequence[str], options: Collection[str], switches: Collection[str]) -> ParsedArguments:
    """Return the parsed arguments. A flag is followed by its value, or is `--name=value`; a switch may stand alone.

    >>> parse_arguments(["a", "--nproc", "2", "--model.heads=8", "--joint"], {"nproc"}, {"joint"})
    ParsedArguments(names=('a',), options={'nproc': '2'}, fields={'model.heads': '8', 'joint': 'true'})
    """
    parsed, rest = ParsedArguments((), {}, {}), list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            parsed = parsed._replace(names=(*parsed.names, word))
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if not equals:
            value = take_value(name, rest, switches)
        (parsed.options if name in options else parsed.fields)[name] = value
    return parsed


def take_value(name: str, rest: list[str], switches: Collection[str]) -> str:
    """Remove the value of a flag from the front of `rest` and return it."""
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
            yield Field(path + entry.name, value, comments.get(entry.name, ""), read_choices(entry.type))


def read_choices(kind: object) -> tuple[str, ...]:
    """Return what a field of this type may be, if its type names it.

    >>> read_choices(Literal["gru", "lstm"]), read_choices(int)
    (('gru', 'lstm'), ())
    """
    return tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()


def read_comments(section: type) -> Mapping[str, str]:
    """Return the comment behind each field in the source: the help repeats it."""
    return dict(re.findall(r"^    (\w+): [^#\n]*#\s*(.*)$", inspect.getsource(section), flags=re.MULTILINE))


def find_switches(config: Any) -> set[str]:
    """Return the fields that are true or false."""
    return {field.name for field in describe_fields(config) if isinstance(field.value, bool)}
