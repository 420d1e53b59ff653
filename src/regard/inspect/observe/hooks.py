"""What the replaced functions tell: from the arguments they were called with to what was attended to."""

import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

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
from regard.inspect.observe.calls import RowwiseCall, SoftmaxCall
from regard.inspect.observe.own_attention import build_tensor_call
from regard.inspect.observe.patches import EAGER, ENCODER, MULTIHEAD, NATIVE, SDPA, Hook
from regard.inspect.observe.sites import Site, Sites, is_inside_attend


@runtime_checkable
class ObserverInterface(Protocol):
    """An observer, as far as these functions know it."""

    item: int

    @property
    def sites(self) -> Sites: ...

    def find_site(self, part: str | None = None) -> Site | None: ...

    def add(self, name: str, look: SoftmaxCall | RowwiseCall, first: Tensor | None = None) -> None: ...

    def expect(self, name: str, keys: int, offset: int | None) -> None: ...

    def wants(self, name: str) -> bool: ...

    def note_missed(self, name: str, reason: str) -> None: ...


def observe_sdpa(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """`F.scaled_dot_product_attention`; called by our own operator, it is told of there."""
    if is_inside_attend():
        return
    query, key, mask, causal, scale = _bind_sdpa(*arguments, **named)
    reason = explain_unreadable(query, key)
    for observer, site in find_observed_sites():
        if reason is not None:
            observer.note_missed(site.name, reason)
        else:
            look = build_sdpa_call(observer.item, query, key, mask, causal=causal, scale=scale)
            observer.add(site.name, look, look.key[:, :1])


def _bind_sdpa(  # noqa: PLR0913  # as torch has it
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None, bool, float | None]:
    return query, key, attn_mask, is_causal, scale


def observe_multihead(original: Callable[..., Any], result: Any, *arguments: Any, **named: Any) -> None:
    """`F.multi_head_attention_forward`: without weights it calls the fused one, which tells; with them it does not."""
    bound = inspect.signature(original).bind(*arguments, **named)
    bound.apply_defaults()
    given = bound.arguments
    if not given["need_weights"]:
        return
    watching = find_observed_sites()
    if not watching:
        return
    weights = result[1]
    dropped = given["training"] and given["dropout_p"] > 0
    if dropped or given["average_attn_weights"]:
        given |= {"training": False, "average_attn_weights": False}
        weights = original(*bound.args, **bound.kwargs)[1]
    for observer, site in watching:
        observer.add(site.name, build_tensor_call(weights, observer.item))


def observe_native(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """`torch._native_multi_head_attention`, the fast path of `nn.MultiheadAttention`."""
    query, key, _, _, heads, weight, bias, *rest = arguments
    mask, kind = rest[2], rest[5]
    for observer, site in find_observed_sites():
        item = check_item(observer.item, query.size(0))
        own = query.unbind()[item], key.unbind()[item]
        observer.add(site.name, build_packed_call(*own, heads, weight, bias, find_hidden(mask, kind, item)))


def observe_encoder_layer(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """`torch._transformer_encoder_layer_fwd`, the fast path of `nn.TransformerEncoderLayer`.

    Where padding was taken out before, only the real positions are seen.
    """
    source, size, heads, weight, bias, _, _, _, first, epsilon, scale, shift, *rest = arguments
    mask, kind = rest[-2:]
    for observer, site in find_observed_sites("self_attn"):
        item = check_item(observer.item, source.size(0))
        own = source.unbind()[item]
        own = F.layer_norm(own, (size,), scale, shift, epsilon) if first else own
        observer.add(site.name, build_packed_call(own, own, heads, weight, bias, find_hidden(mask, kind, item)))


def observe_eager(original: Callable[..., Any], result: Any, *arguments: Any, **named: Any) -> None:
    """The eager attention of a model of transformers: output and weights, these after dropout."""
    watching = find_observed_sites()
    if not watching or not isinstance(result, tuple) or not isinstance(result[1], Tensor):
        return
    weights, given = result[1], inspect.signature(original).bind(*arguments, **named)
    key = given.arguments.get("key")
    if given.arguments.get("dropout"):
        given.arguments["dropout"] = 0.0
        with torch.random.fork_rng(devices=[]):
            weights = original(*given.args, **given.kwargs)[1]
    for observer, site in watching:
        observer.add(site.name, build_tensor_call(weights, observer.item), _select_first_key(key, observer.item))


def _select_first_key(key: object, item: int) -> Tensor | None:
    """The first key of one item, where keys are (batch, groups, keys, dim)."""
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


def find_observed_sites(part: str | None = None) -> list[tuple[ObserverInterface, Site]]:
    """Those who watch and want to see the site that is computing, or a part of it."""
    found = [(observer, observer.find_site(part)) for observer in find_observers()]
    return [(observer, site) for observer, site in found if site is not None]


def find_observers() -> list[ObserverInterface]:
    """Those who watch this thread of work, in whatever module."""
    return [watcher for watcher in WATCHERS.get() if isinstance(watcher, ObserverInterface)]


def explain_unreadable(*tensors: Tensor) -> str | None:
    """Why these cannot be looked at: there are no plain numbers in them."""
    for tensor in tensors:
        if tensor.is_meta or tensor.is_nested or isinstance(tensor, FakeTensor):
            return "a meta, fake or nested tensor"
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return "inside of a transform of torch.func"
    return None
