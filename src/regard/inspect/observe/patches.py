"""Replace the attention functions of torch and transformers while anyone observes, and put them back afterwards.

A replacement calls the original with the same arguments and returns its result, so not a bit of it changes; then it
calls a hook for the observers of this thread of work. Other threads only pay for one more call.
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
DEPTH: ContextVar[int] = ContextVar("regard_depth", default=0)  # hooked functions in progress
_lock = threading.Lock()


class Patch:
    """A function of a namespace (a module or a class) that is replaced while anyone holds it."""

    def __init__(self, namespace: Any, name: str, replace: Replacer) -> None:
        self.namespace, self.name = namespace, name
        self.inherited = name not in vars(namespace)
        self.original = getattr(namespace, name)
        self.replacement = replace(self.original)
        self.holders = 0

    def hold(self) -> None:
        """Replace the function, unless it is replaced already."""
        if self.holders == 0:
            setattr(self.namespace, self.name, self.replacement)
        self.holders += 1

    def release(self) -> None:
        """Put the function back after the last holder, unless somebody else has replaced it since."""
        self.holders -= 1
        if self.holders or getattr(self.namespace, self.name) is not self.replacement:
            return
        if self.inherited:
            delattr(self.namespace, self.name)
        else:
            setattr(self.namespace, self.name, self.original)


def is_observed() -> bool:
    """Return whether anyone watches this thread of work; never while torch.compile traces, which cannot know."""
    return not torch.compiler.is_compiling() and bool(WATCHERS.get())


def wrap_with_hook(hook: Hook) -> Replacer:
    """Return a replacer: call the original, then `hook` with the original, its result and its arguments."""

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
    """Replace, inside, the functions named by `replacements` wherever the model's own code would find them."""
    with _lock:
        held = list(_find_patches(model, replacements))
        for patch in held:
            patch.hold()
    try:
        yield
    finally:
        with _lock:
            for patch in reversed(held):
                patch.release()
                if patch.holders == 0:
                    del _patches[id(patch.namespace), patch.name]


def _find_patches(model: nn.Module, replacements: Mapping[str, Replacer]) -> Iterable[Patch]:
    for space, name in (*NAMESPACES, *_find_caches()):
        yield _get_patch(space, name, replacements[name])
    originals = {id(_patches[id(space), name].original): name for space, name in ((F, SDPA), (torch, SOFTMAX))}
    for space in _find_namespaces(model):
        for name, thing in list(vars(space).items()):
            if id(thing) in originals:  # from torch.nn.functional import scaled_dot_product_attention
                yield _get_patch(space, name, replacements[originals[id(thing)]])
            elif name == EAGER and callable(thing):  # transformers has one in each of its models
                yield _get_patch(space, name, replacements[EAGER])


def _get_patch(namespace: Any, name: str, replace: Replacer) -> Patch:
    if (id(namespace), name) not in _patches:
        _patches[id(namespace), name] = Patch(namespace, name, replace)
    return _patches[id(namespace), name]


def _find_namespaces(model: nn.Module) -> list[Any]:
    """Return the Python modules that define the classes of the model's modules."""
    names = {kind.__module__ for module in model.modules() for kind in type(module).__mro__}
    return [sys.modules[name] for name in sorted(names) if name in sys.modules and sys.modules[name] is not F]


def _find_caches() -> list[tuple[Any, str]]:
    """Return the key–value cache of transformers if it is loaded; all its kinds are updated through one method."""
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
