"""Word what the parser of the command line complains of as all other errors are worded."""

import difflib
import inspect
from typing import Any

from cyclopts import CycloptsError, exceptions

from regard.errors import find_nearest, format_message

NUMBERS = {int: "a whole number", float: "a number"}


def explain_usage(error: CycloptsError) -> str:
    """Return the message of an error of the parser: what was typed, what the command takes, and what to write."""
    command = find_command(error)
    help_fix = f"see {command} --help"
    match error:
        case exceptions.UnknownCommandError():
            typed, known = (error.unused_tokens or [""])[0], list_commands(error)
            return format_message(
                "command", repr(typed), f"one of {', '.join(known)}", f"write regard {find_nearest(typed, known)}"
            )
        case exceptions.UnknownOptionError():
            return explain_unknown_option(error, command)
        case exceptions.UnusedCliTokensError():
            words = error.unused_tokens or []
            got = f"{', '.join(map(repr, words))}, which {'is' if len(words) == 1 else 'are'} more than it takes"
            return format_message(command, got, describe_usage(error, command), f"leave it out, or {help_fix}")
        case exceptions.CoercionError():
            return explain_value(error, help_fix)
        case exceptions.MissingArgumentError():
            return explain_missing(error, command, help_fix)
        case exceptions.RepeatArgumentError():
            name = error.token.keyword or get_argument_name(error)
            return format_message(name, "it twice", "it once", "leave one of them out")
    return format_message(command, str(error), describe_usage(error, command), help_fix)


def explain_missing(error: exceptions.MissingArgumentError, command: str, help_fix: str) -> str:
    """Return the message for a parameter that was left out, or for a flag without its value."""
    typed = error.keyword or next((token.keyword for token in (error.argument.tokens if error.argument else ())), None)
    if typed:
        return format_message(typed, "nothing after it", "a value", f"write {typed} followed by its value")
    return format_message(
        command, f"no {get_argument_name(error)}", describe_usage(error, command), f"add it, or {help_fix}"
    )


def explain_unknown_option(error: exceptions.UnknownOptionError, command: str) -> str:
    """Return the message for a flag that a command does not have, with the nearest that it has."""
    typed = (error.token.keyword or error.token.value).partition("=")[0]
    known = sorted({name for argument in error.argument_collection for name in argument.names if name[:2] == "--"})
    if not known:
        return format_message(typed, f"a flag that {command} does not have", "none", "leave it out")
    near = difflib.get_close_matches(typed.strip("-"), [name.strip("-") for name in known], n=1)  # dashes are alike
    fix = f"write --{near[0]}" if near else f"leave it out, or see {command} --help"
    return format_message(typed, f"a flag that {command} does not have", f"one of {', '.join(known)}", fix)


def explain_value(error: exceptions.CoercionError, help_fix: str) -> str:
    """Return the message for a value that is not of the type of its flag."""
    name = (error.token and error.token.keyword) or get_argument_name(error)
    got = repr(error.token.value) if error.token else "another kind of value"
    kind: Any = error.target_type
    choices = [str(choice) for choice in getattr(kind, "__args__", ())]
    if choices and error.token:
        fix = f"write {name} {find_nearest(error.token.value, choices)}" if name.startswith("-") else help_fix
        return format_message(name, got, f"one of {', '.join(choices)}", fix)
    return format_message(name, got, NUMBERS.get(kind, f"a {getattr(kind, '__name__', kind)}"), help_fix)


def find_command(error: CycloptsError) -> str:
    """Return the command as it is typed, such as `regard evaluate`."""
    chain = [word for word in error.command_chain or () if not word.startswith("regard")]
    name = error.app.name[0] if error.app is not None else "regard"
    root = name if name.startswith("regard") else "regard"
    return " ".join([root, *(word for word in chain if word not in root.split())])


def list_commands(error: CycloptsError) -> list[str]:
    """Return the names of all commands."""
    names = error.app if error.app is not None else ()
    return [name for name in names if not name.startswith("-")]


def get_argument_name(error: CycloptsError) -> str:
    """Return the name of the parameter in question: RUN for one by position, --name for a flag."""
    if error.argument is None:
        return "arguments"
    field = error.argument.field_info
    return field.name.upper() if field.is_positional else error.argument.name


def describe_usage(error: CycloptsError, command: str) -> str:
    """Return how a command is written: its name and the parameters that it takes by position."""
    words = [command]
    for parameter in inspect.signature(error.target).parameters.values() if error.target else ():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            name = parameter.name.upper()
            words.append(name if parameter.default is parameter.empty else f"[{name}]")
        elif parameter.kind is parameter.VAR_POSITIONAL:
            words.append(f"[{parameter.name.upper()} …]")
        elif parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            words.append(f"--{parameter.name} {parameter.name.upper()}")
    return " ".join(words)
