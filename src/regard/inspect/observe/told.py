"""What the replaced functions tell: from the arguments they were called with to what was attended to."""

import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor

from regard.algebra.shapes import Tensor
from regard.compute.watching import WATCHERS
from regard.inspect.observe.arguments import hidden_by, inside, of_fused, of_packed, pick, wide
from regard.inspect.observe.look import Computed, Look
from regard.inspect.observe.own import of_tensor
from regard.inspect.observe.sites import Site, Sites, within_own
from regard.inspect.observe.swaps import EAGER, ENCODER, MULTIHEAD, NATIVE, SDPA, Told


@runtime_checkable
class Observing(Protocol):
    """An observer, as far as these functions know it."""

    item: int

    @property
    def sites(self) -> Sites: ...

    def site(self, part: str | None = None) -> Site | None: ...

    def add(self, name: str, look: Look | Computed, first: Tensor | None = None) -> None: ...

    def expect(self, name: str, keys: int, offset: int | None) -> None: ...

    def wants(self, name: str) -> bool: ...

    def missed(self, name: str, reason: str) -> None: ...


def fused(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """`F.scaled_dot_product_attention`; called by our own operator, it is told of there."""
    if within_own():
        return
    query, key, mask, causal, scale = _of_fused(*arguments, **named)
    reason = strange(query, key)
    for observer, site in each():
        if reason is not None:
            observer.missed(site.name, reason)
        else:
            look = of_fused(observer.item, query, key, mask, causal=causal, scale=scale)
            observer.add(site.name, look, look.key[:, :1])


def _of_fused(  # noqa: PLR0913  # as torch has it
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


def multihead(original: Callable[..., Any], result: Any, *arguments: Any, **named: Any) -> None:
    """`F.multi_head_attention_forward`: without weights it calls the fused one, which tells; with them it does not."""
    bound = inspect.signature(original).bind(*arguments, **named)
    bound.apply_defaults()
    given = bound.arguments
    if not given["need_weights"]:
        return
    watching = each()
    if not watching:
        return
    weights = result[1]
    dropped = given["training"] and given["dropout_p"] > 0
    if dropped or given["average_attn_weights"]:
        given |= {"training": False, "average_attn_weights": False}
        weights = original(*bound.args, **bound.kwargs)[1]
    for observer, site in watching:
        observer.add(site.name, of_tensor(weights, observer.item))


def native(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """`torch._native_multi_head_attention`, the fast path of `nn.MultiheadAttention`."""
    query, key, _, _, heads, weight, bias, *rest = arguments
    mask, kind = rest[2], rest[5]
    for observer, site in each():
        item = inside(observer.item, query.size(0))
        own = query.unbind()[item], key.unbind()[item]
        observer.add(site.name, of_packed(*own, heads, weight, bias, hidden_by(mask, kind, item)))


def encoder(original: Any, result: Any, *arguments: Any, **named: Any) -> None:
    """`torch._transformer_encoder_layer_fwd`, the fast path of `nn.TransformerEncoderLayer`.

    Where padding was taken out before, only the real positions are seen.
    """
    source, size, heads, weight, bias, _, _, _, first, epsilon, scale, shift, *rest = arguments
    mask, kind = rest[-2:]
    for observer, site in each("self_attn"):
        item = inside(observer.item, source.size(0))
        own = source.unbind()[item]
        own = F.layer_norm(own, (size,), scale, shift, epsilon) if first else own
        observer.add(site.name, of_packed(own, own, heads, weight, bias, hidden_by(mask, kind, item)))


def eager(original: Callable[..., Any], result: Any, *arguments: Any, **named: Any) -> None:
    """The eager attention of a model of transformers: output and weights, these after dropout."""
    watching = each()
    if not watching or not isinstance(result, tuple) or not isinstance(result[1], Tensor):
        return
    weights, given = result[1], inspect.signature(original).bind(*arguments, **named)
    key = given.arguments.get("key")
    if given.arguments.get("dropout"):
        given.arguments["dropout"] = 0.0
        with torch.random.fork_rng(devices=[]):
            weights = original(*given.args, **given.kwargs)[1]
    for observer, site in watching:
        observer.add(site.name, of_tensor(weights, observer.item), _first(key, observer.item))


def _first(key: object, item: int) -> Tensor | None:
    """The first key of one item, where keys are (batch, groups, keys, dim)."""
    if not isinstance(key, Tensor) or key.dim() != 4:
        return None
    return wide(pick(key[..., :1, :], key.shape[:-3], item))


TOLD: dict[str, Told] = {SDPA: fused, MULTIHEAD: multihead, NATIVE: native, ENCODER: encoder, EAGER: eager}


def each(part: str | None = None) -> list[tuple[Observing, Site]]:
    """Those who watch and want to see the site that is computing, or a part of it."""
    found = [(observer, observer.site(part)) for observer in observers()]
    return [(observer, site) for observer, site in found if site is not None]


def observers() -> list[Observing]:
    """Those who watch this thread of work, in whatever module."""
    return [watcher for watcher in WATCHERS.get() if isinstance(watcher, Observing)]


def strange(*tensors: Tensor) -> str | None:
    """Why these cannot be looked at: there are no plain numbers in them."""
    for tensor in tensors:
        if tensor.is_meta or tensor.is_nested or isinstance(tensor, FakeTensor):
            return "a meta, fake or nested tensor"
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return "inside of a transform of torch.func"
    return None
