"""Find the module of a model that is computing from the call stack.

Module hooks would also do, but torch leaves its fast path for modules that have any, and the output would change.
"""

import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from torch import nn

from regard.compute.attend import attend
from regard.layers import Mechanism

ATTEND_CODE: CodeType = inspect.unwrap(attend).__code__  # tests wrap every function to check shapes


class Site(NamedTuple):
    """A module of the observed model, and its path in it."""

    name: str
    module: nn.Module


class Sites:
    """The modules of a model by identity."""

    def __init__(self, model: nn.Module) -> None:
        # A module in two places has the name of the first; the model itself has that of its class.
        self.names = {id(module): name for name, module in reversed(list(model.named_modules()))}
        self.names[id(model)] = type(model).__name__
        self.model = model  # identities are only good while the modules live

    def find_current(self) -> Site | None:
        """Return the innermost module of this model that is computing; None if there is none.

        A mechanism belongs to the layer that it is a part of.
        """
        module = next((module for _, module in self.iterate_frames() if module is not None), None)
        return None if module is None else Site(self.names[id(module)], module)

    def iterate_frames(self) -> Iterator[tuple[FrameType, nn.Module | None]]:
        """Yield the calls in progress, innermost first, each with the module of this model that it is a method of."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            code, module = frame.f_code, None
            if code.co_argcount:
                first = frame.f_locals.get(code.co_varnames[0])
                if isinstance(first, nn.Module) and id(first) in self.names and not isinstance(first, Mechanism):
                    module = first
            yield frame, module
            frame = frame.f_back


def read_arguments(frame: FrameType) -> list[Any]:
    """Return the arguments of a call in progress."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return [frame.f_locals.get(name) for name in code.co_varnames[:count]]


def is_inside_attend() -> bool:
    """Return whether our own operator is computing, which notifies observers itself."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is ATTEND_CODE:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
