"""The attention functions of torch and of others, replaced while somebody watches and put back after the last.

The replacement calls what it replaced with the same arguments and gives its result, so no bit of it changes; then it
tells those who watch in this thread of work. For all others it is one more call.
"""

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from regard.compute.watchers import WATCHERS

Hook = Callable[..., None]
Function = Callable[..., Any]
Replacer = Callable[[Function], Function]
DEPTH: ContextVar[int] = ContextVar("regard_depth", default=0)  # functions in progress that tell of themselves
_lock = threading.Lock()


class Patch:
    """One function by its name in a module or a class, replaced while anyone holds it."""

    def __init__(self, home: Any, name: str, replace: Replacer) -> None:
        self.home, self.name = home, name
        self.inherited = name not in vars(home)
        self.original = getattr(home, name)
        self.replacement = replace(self.original)
        self.holders = 0

    def hold(self) -> None:
        """Replace it, unless it is."""
        if self.holders == 0:
            setattr(self.home, self.name, self.replacement)
        self.holders += 1

    def release(self) -> None:
        """Put it back after the last; leave it where somebody else has replaced it since."""
        self.holders -= 1
        if self.holders or getattr(self.home, self.name) is not self.replacement:
            return
        if self.inherited:
            delattr(self.home, self.name)
        else:
            setattr(self.home, self.name, self.original)


def is_observed() -> bool:
    """Whether somebody watches this thread of work; never while torch.compile traces, which cannot look that up."""
    return not torch.compiler.is_compiling() and bool(WATCHERS.get())


def wrap_with_hook(hook: Hook) -> Replacer:
    """The replacement that calls the original, and then `hook` with it, its result and its arguments."""

    def wrap(original: Function) -> Function:
        @functools.wraps(original)
        def wrapper(*arguments: Any, **named: Any) -> Any:
            if not is_observed():
                return original(*arguments, **named)
            token = DEPTH.set(DEPTH.get() + 1)
            try:
                result = original(*arguments, **named)
                with torch.no_grad():
                    hook(original, result, *arguments, **named)
            finally:
                DEPTH.reset(token)
            return result

        return wrapper

    return wrap


_patches: dict[tuple[int, str], Patch] = {}


@contextmanager
def patch_functions(model: nn.Module, replacements: Mapping[str, Replacer]) -> Any:
    """Inside, the functions that `replacements` names are replaced wherever the model's own code would find them."""
    with _lock:
        held = list(_find_patches(model, replacements))
        for swap in held:
            swap.hold()
    try:
        yield
    finally:
        with _lock:
            for swap in reversed(held):
                swap.release()
                if swap.holders == 0:
                    del _patches[id(swap.home), swap.name]


def _find_patches(model: nn.Module, replacements: Mapping[str, Replacer]) -> Iterable[Patch]:
    for home, name in (*NAMESPACES, *_find_caches()):
        yield _get_patch(home, name, replacements[name])
    originals = {id(_patches[id(home), name].original): name for home, name in ((F, SDPA), (torch, SOFTMAX))}
    for home in _find_namespaces(model):
        for name, thing in list(vars(home).items()):
            if id(thing) in originals:  # from torch.nn.functional import scaled_dot_product_attention
                yield _get_patch(home, name, replacements[originals[id(thing)]])
            elif name == EAGER and callable(thing):  # transformers has one in each of its models
                yield _get_patch(home, name, replacements[EAGER])


def _get_patch(home: Any, name: str, replace: Replacer) -> Patch:
    swap = _patches.get((id(home), name))
    if swap is None:
        swap = _patches[id(home), name] = Patch(home, name, replace)
    return swap


def _find_namespaces(model: nn.Module) -> list[Any]:
    """The files that the classes of the model's modules are written in."""
    names = {kind.__module__ for module in model.modules() for kind in type(module).__mro__}
    homes = [sys.modules[name] for name in sorted(names) if name in sys.modules]
    return [home for home in homes if home is not F]


def _find_caches() -> list[tuple[Any, str]]:
    """The key–value cache of transformers, if that is loaded: all kinds of it are updated through one method."""
    cache = getattr(sys.modules.get("transformers.cache_utils"), "Cache", None)
    return [] if cache is None else [(cache, UPDATE)]


SDPA, MULTIHEAD = "scaled_dot_product_attention", "multi_head_attention_forward"
NATIVE, ENCODER = "_native_multi_head_attention", "_transformer_encoder_layer_fwd"
EAGER, SOFTMAX = "eager_attention_forward", "softmax"
CALL, UPDATE = "__call__", "update"
# `F.softmax` and `nn.Softmax` call the method of the tensor.
NAMESPACES: tuple[tuple[Any, str], ...] = (
    (F, SDPA),
    (F, MULTIHEAD),
    (torch, NATIVE),
    (torch, ENCODER),
    (torch, SOFTMAX),
    (torch.Tensor, SOFTMAX),
    (nn.Module, CALL),
)
