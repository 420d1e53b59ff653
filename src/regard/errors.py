"""Errors that the caller can mend, all worded alike: `name: got …, expected …; fix: …`."""

import difflib
from collections.abc import Iterable
from importlib import import_module
from typing import Any

__all__ = ["InputError", "KindError", "PlanError", "RegardError"]


class RegardError(Exception):
    """The base of all errors that this library raises on purpose."""

    relayed = False  # whether another process has printed it already


class InputError(RegardError, ValueError):
    """A value that cannot be used."""


class KindError(RegardError, TypeError):
    """An object of the wrong type or dtype."""


class PlanError(RegardError, NotImplementedError):
    """A backend was asked for by name and cannot compute these parts."""


class StaleError(RegardError, RuntimeError):
    """Tensors of a call were changed before something was computed from them."""


def format_message(name: str, got: object, expected: str, fix: str) -> str:
    """Return the message of an error.

    >>> format_message("heads", 3, "a divisor of size=64", "use one of 1, 2, 4, 8")
    'heads: got 3, expected a divisor of size=64; fix: use one of 1, 2, 4, 8'
    """
    return f"{name}: got {got}, expected {expected}; fix: {fix}"


def wrong(name: str, got: object, expected: str, fix: str) -> InputError:
    """Return a value error, which the caller raises."""
    return InputError(format_message(name, got, expected, fix))


def wrong_kind(name: str, got: object, expected: str, fix: str) -> KindError:
    """Return a type error, which the caller raises."""
    return KindError(format_message(name, got, expected, fix))


def missing_package(package: str, extra: str, otherwise: str = "") -> InputError:
    """Return the error for a package that is not installed, with the extra that installs it.

    >>> str(missing_package("pillow", "vision"))
    "pillow: got no such package, expected it installed; fix: pip install 'regard[vision]'"
    """
    return wrong(package, "no such package", "it installed", f"pip install 'regard[{extra}]'{otherwise}")


def import_package(module: str, extra: str, *, package: str = "", otherwise: str = "") -> Any:
    """Return a module of a package that is optional; raise if it is missing, with the extra that installs it."""
    try:
        return import_module(module)
    except ImportError:
        raise missing_package(package or module, extra, otherwise) from None


def find_nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that was most likely meant.

    >>> find_nearest("haeds", ["size", "heads"])
    'heads'
    """
    names = list(known)
    return (difflib.get_close_matches(name, names, n=1, cutoff=0.0) or names)[0]
