"""Observe attention that models compute step by step: the softmax inside a module that looks like attention."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn

from regard.algebra.shapes import Tensor
from regard.inspect.observe.attention_modules import arrange_heads, count_heads, explain_unseen, looks_like_attention
from regard.inspect.observe.hooks import explain_unreadable, find_observers
from regard.inspect.observe.observer import Observer
from regard.inspect.observe.own_attention import build_tensor_call
from regard.inspect.observe.patches import DEPTH
from regard.inspect.observe.sites import Site, Sites, is_inside_attend, read_arguments


def observe_softmax(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """Observe `torch.softmax` and the method of tensors, which `F.softmax` and `nn.Softmax` call.

    A softmax inside another observed function (our operator, or the eager attention of transformers) is not recorded
    twice, and one that a hook itself computes is not recorded at all.
    """
    if DEPTH.get() > 1 or not isinstance(result, Tensor) or not 3 <= result.dim() <= 5:
        return
    if explain_unreadable(result) or is_inside_attend():
        return
    if _read_axis(*arguments, **named) not in (-1, result.dim() - 1):
        return
    for observer in find_observers():
        site, inputs = _find_site(observer.sites)
        weights = None if site is None else _arrange_weights(result, site, inputs)
        if site is not None and weights is not None and observer.wants(site.name):
            _add_weights(observer, site.name, weights)


def _read_axis(scores: Tensor, dim: Any = None, *arguments: Any, **named: Any) -> Any:
    return dim


def _add_weights(observer: Observer, name: str, weights: Tensor) -> None:
    if observer.item < weights.shape[0]:
        observer.add(name, build_tensor_call(weights, observer.item))
    else:
        observer.note_missed(name, f"item {observer.item} was asked for, and it computed {weights.shape[0]}")


def _find_site(sites: Sites) -> tuple[Site | None, list[Tensor]]:
    """Return the innermost module that computes and its inputs, if it looks like attention and is not ours."""
    site: Site | None = None
    inputs: list[Tensor] = []
    for frame, module in sites.iterate_frames():
        if module is None or (site is None and _is_bare(module)):
            continue
        if site is not None and module is not site.module:
            break
        site = site or Site(sites.names[id(module)], module)
        inputs += list(_iterate_tensors(read_arguments(frame)))
        if not looks_like_attention(module) or type(module).__module__.startswith("regard."):
            return None, []
    return site, inputs


def _is_bare(module: nn.Module) -> bool:
    """Return whether it is only a function in the form of a module, such as `nn.Softmax`: its caller counts."""
    return not module._modules and not module._parameters and not looks_like_attention(module)


def _iterate_tensors(things: Iterable[Any]) -> Iterator[Tensor]:
    for thing in things:
        if isinstance(thing, Tensor):
            yield thing
        elif isinstance(thing, list | tuple):
            yield from _iterate_tensors(thing)
        elif isinstance(thing, dict):
            yield from _iterate_tensors(thing.values())


def _arrange_weights(result: Tensor, site: Site, inputs: list[Tensor]) -> Tensor | None:
    """Return the result as (batch, heads, queries, keys); None if no input has as many positions as its queries."""
    if explain_unseen(site.module) is not None:
        return None
    weights = arrange_heads(result, count_heads(site.module))
    lengths = {length for tensor in inputs for length in _list_lengths(tensor)}
    return weights if weights is not None and weights.shape[-2] in lengths else None


def _list_lengths(tensor: Tensor) -> list[int]:
    """Return how many positions a tensor may have: along an axis, or in the rows and columns of an image."""
    shape = tensor.shape
    images = [math.prod(shape[1:3]), math.prod(shape[2:4])] if tensor.dim() == 4 else []
    return [*shape[:-1], *images]
