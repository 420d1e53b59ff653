"""The attention functions of torch and of others, replaced while somebody watches and put back after the last.

The replacement calls what it replaced with the same arguments and gives its result, so no bit of it changes; then it
tells those who watch in this thread of work. For all others it is one more call.
"""

import functools
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from regard.watching import WATCHERS

Told = Callable[..., None]
_lock = threading.Lock()


class Swap:
    """One function by its name in a module, replaced while anyone holds it."""

    def __init__(self, home: Any, name: str, told: Told) -> None:
        self.home, self.name = home, name
        self.original = getattr(home, name)
        self.replacement = _replacement(self.original, told)
        self.holders = 0

    def hold(self) -> None:
        """Replace it, unless it is."""
        if self.holders == 0:
            setattr(self.home, self.name, self.replacement)
        self.holders += 1

    def release(self) -> None:
        """Put it back after the last; leave it where somebody else has replaced it since."""
        self.holders -= 1
        if self.holders == 0 and getattr(self.home, self.name) is self.replacement:
            setattr(self.home, self.name, self.original)


def _replacement(original: Callable[..., Any], told: Told) -> Callable[..., Any]:
    @functools.wraps(original)
    def watched(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        if WATCHERS.get() and not torch.compiler.is_compiling():
            with torch.no_grad():
                told(original, result, *arguments, **named)
        return result

    return watched


_swaps: dict[tuple[int, str], Swap] = {}


@contextmanager
def swapped(model: nn.Module, told: dict[str, Told]) -> Any:
    """Inside, the functions that `told` names are replaced wherever the model's own code would find them."""
    with _lock:
        held = list(_found(model, told))
        for swap in held:
            swap.hold()
    try:
        yield
    finally:
        with _lock:
            for swap in reversed(held):
                swap.release()
                if swap.holders == 0:
                    del _swaps[id(swap.home), swap.name]


def _found(model: nn.Module, told: dict[str, Told]) -> Iterable[Swap]:
    for home, name in ((F, SDPA), (F, MULTIHEAD), (torch, NATIVE), (torch, ENCODER)):
        yield _swap(home, name, told[name])
    originals = {id(_swaps[id(F), SDPA].original): SDPA}
    for home in _homes(model):
        for name, thing in list(vars(home).items()):
            if id(thing) in originals:  # from torch.nn.functional import scaled_dot_product_attention
                yield _swap(home, name, told[SDPA])
            elif name == EAGER and callable(thing):  # transformers has one in each of its models
                yield _swap(home, name, told[EAGER])


def _swap(home: Any, name: str, told: Told) -> Swap:
    swap = _swaps.get((id(home), name))
    if swap is None:
        swap = _swaps[id(home), name] = Swap(home, name, told)
    return swap


def _homes(model: nn.Module) -> list[Any]:
    """The files that the classes of the model's modules are written in."""
    names = {kind.__module__ for module in model.modules() for kind in type(module).__mro__}
    homes = [sys.modules[name] for name in sorted(names) if name in sys.modules]
    return [home for home in homes if home is not F]


SDPA, MULTIHEAD = "scaled_dot_product_attention", "multi_head_attention_forward"
NATIVE, ENCODER = "_native_multi_head_attention", "_transformer_encoder_layer_fwd"
EAGER = "eager_attention_forward"
