"""The check by which long work on a recording can be interrupted: it is called now and then, and raises to end it."""

from collections.abc import Callable

InterruptCheck = Callable[[], object]


def never_interrupt() -> None:
    """Do nothing: the check of work that is never interrupted."""
