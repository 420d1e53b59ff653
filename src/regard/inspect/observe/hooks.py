"""Hooks on the attention functions of torch and transformers: turn their arguments into calls that can be kept."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor

from regard.algebra.shapes import Tensor
from regard.compute.watchers import WATCHERS
from regard.inspect.observe.arguments import (
    build_packed_call,
    build_sdpa_call,
    check_item,
    find_hidden,
    select_item,
    upcast_half,
)
from regard.inspect.observe.observer import Observer
from regard.inspect.observe.own_attention import build_tensor_call
from regard.inspect.observe.patches import EAGER, ENCODER, MULTIHEAD, NATIVE, SDPA, Function, Hook, is_observed
from regard.inspect.observe.sites import Site, is_inside_attend


def observe_sdpa(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """Observe `F.scaled_dot_product_attention`, unless our own operator calls it, which notifies observers itself."""
    if is_inside_attend():
        return
    query, key, value, mask, causal, scale = _bind_sdpa(*arguments, **named)
    reason = explain_unreadable(query, key)
    for observer, site in find_observed_sites():
        if reason is not None:
            observer.note_missed(site.name, reason)
        else:
            call = build_sdpa_call(observer.item, query, key, value, mask, causal=causal, scale=scale)
            observer.add(site.name, call, call.key[:, :1])


def _bind_sdpa(  # noqa: PLR0913  # the signature of torch, which cannot be inspected
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, bool, float | None]:
    return query, key, value, attn_mask, is_causal, scale


def observe_multihead(original: Callable[..., Any], result: Any, *arguments: Any, **named: Any) -> None:
    """Observe `F.multi_head_attention_forward`, if it computes weights; if not, it calls the fused function."""
    bound = inspect.signature(original).bind(*arguments, **named)
    bound.apply_defaults()
    given = bound.arguments
    if not given["need_weights"]:
        return
    observed = find_observed_sites()
    if not observed:
        return
    weights = result[1]
    dropped = given["training"] and given["dropout_p"] > 0
    if dropped or given["average_attn_weights"]:
        given |= {"training": False, "average_attn_weights": False}
        weights = original(*bound.args, **bound.kwargs)[1]
    for observer, site in observed:
        observer.add(site.name, build_tensor_call(weights, observer.item))


def observe_native(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """Observe `torch._native_multi_head_attention`, the fast path of `nn.MultiheadAttention`."""
    query, key, _, _, heads, weight, bias, *rest = arguments
    mask, kind = rest[2], rest[5]
    for observer, site in find_observed_sites():
        item = check_item(observer.item, query.size(0))
        hidden = find_hidden(mask, kind, item)
        observer.add(
            site.name, build_packed_call(query.unbind()[item], key.unbind()[item], heads, weight, bias, hidden)
        )


def observe_encoder_layer(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """Observe `torch._transformer_encoder_layer_fwd`, the fast path of `nn.TransformerEncoderLayer`.

    If padding was taken out before, only the other positions are recorded.
    """
    source, size, heads, weight, bias, _, _, _, first, epsilon, scale, shift, *rest = arguments
    mask, kind = rest[-2:]
    for observer, site in find_observed_sites("self_attn"):
        item = check_item(observer.item, source.size(0))
        sequence = source.unbind()[item]
        if first:
            sequence = F.layer_norm(sequence, (size,), scale, shift, epsilon)
        hidden = find_hidden(mask, kind, item)
        observer.add(site.name, build_packed_call(sequence, sequence, heads, weight, bias, hidden))


def observe_eager(original: Callable[..., Any], result: Any, *arguments: Any, **named: Any) -> None:
    """Observe the eager attention of a model of transformers, which returns its output and weights after dropout."""
    observed = find_observed_sites()
    if not observed or not isinstance(result, tuple) or not isinstance(result[1], Tensor):
        return
    weights, given = result[1], inspect.signature(original).bind(*arguments, **named)
    key = given.arguments.get("key")
    if given.arguments.get("dropout"):
        given.arguments["dropout"] = 0.0
        with torch.random.fork_rng(devices=[]):
            weights = original(*given.args, **given.kwargs)[1]
    for observer, site in observed:
        observer.add(site.name, build_tensor_call(weights, observer.item), _select_first_key(key, observer.item))


def _select_first_key(key: object, item: int) -> Tensor | None:
    """Return the first key of one item, if keys are (batch, groups, keys, dim)."""
    if not isinstance(key, Tensor) or key.dim() != 4:
        return None
    return upcast_half(select_item(key[..., :1, :], key.shape[:-3], item))


HOOKS: dict[str, Hook] = {
    SDPA: observe_sdpa,
    MULTIHEAD: observe_multihead,
    NATIVE: observe_native,
    ENCODER: observe_encoder_layer,
    EAGER: observe_eager,
}


def wrap_module_call(original: Function) -> Function:
    """Return the replacement of `nn.Module.__call__`, which remembers which modules were called."""

    @functools.wraps(original)
    def wrapper(module: Any, *arguments: Any, **named: Any) -> Any:
        if is_observed():
            for observer in find_observers():
                observer.called.add(id(module))
        return original(module, *arguments, **named)

    return wrapper


def wrap_cache_update(original: Function) -> Function:
    """Return the replacement of transformers' `Cache.update`, which announces the position of the first key."""

    @functools.wraps(original)
    def wrapper(
        cache: Any, key_states: Tensor, value_states: Tensor, layer_idx: int, *arguments: Any, **named: Any
    ) -> Any:
        sizes = read_mask_sizes(cache, key_states, layer_idx) if is_observed() else None
        result = original(cache, key_states, value_states, layer_idx, *arguments, **named)
        if is_observed():
            keys = result[0].shape[-2]
            for observer, site in find_observed_sites():
                offset = sizes[1] if sizes is not None and sizes[0] == keys else None
                observer.offsets.expect(site.name, keys, offset)
        return result

    return wrapper


def read_mask_sizes(cache: Any, new: Tensor, layer: int) -> tuple[int, int] | None:
    """Return how many keys an update with `new` ones will give and the position of the first; None if not known.

    Transformers builds its masks from these numbers. They are only right before the cache is written.
    """
    try:
        keys, offset = cache.get_mask_sizes(new.shape[-2], layer)
        return int(keys), int(offset)
    except Exception:  # a cache of somebody's own: whatever it raises is no reason to stop the model
        return None


def find_observed_sites(part: str | None = None) -> list[tuple[Observer, Site]]:
    """Return the observers that want the site that is computing, or a `part` of it, each with that site."""
    sites = [(observer, observer.find_site(part)) for observer in find_observers()]
    return [(observer, site) for observer, site in sites if site is not None]


def find_observers() -> list[Observer]:
    """Return the observers of this thread of work."""
    return [watcher for watcher in WATCHERS.get() if isinstance(watcher, Observer)]


def explain_unreadable(*tensors: Tensor) -> str | None:
    """Return why these tensors have no plain numbers to record; None if they have."""
    for tensor in tensors:
        if tensor.is_meta or tensor.is_nested or isinstance(tensor, FakeTensor):
            return "a meta, fake or nested tensor"
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return "inside of a transform of torch.func"
    return None
