"""The additive score and its gradients in plain torch: blocks that stay in the cache, and nothing stored between them.

Every block is a ratio that is linear in a factor of the key alone, in one of three forms that additive.hpp explains:
`plain` (exponentials), `small` (tanh of a sum from two tanh) and `direct` (tanh of each sum).
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch

from regard.shapes import Tensor

Form = Literal["small", "plain", "direct"]

BLOCK = {"cpu": 2**18}  # numbers in a temporary: a megabyte of float32, which two of them keep in a second cache
WIDE_BLOCK = 2**24  # for devices that need much work at once
REACH = {torch.float32: 80.0, torch.float64: 700.0}  # largest exponent of the product of two factors


class Block(NamedTuple):
    """Some queries of some batch entries, with all their keys."""

    batch: slice
    queries: slice


class Flat(NamedTuple):
    """The three inputs with one leading axis."""

    query: Tensor
    key: Tensor
    weight: Tensor


def scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """The scores, in the dtype of the inputs."""
    lead, flat = _flat(query, key, weight)
    result = flat.query.new_empty(flat.query.shape[0], query.shape[-2], key.shape[-2])
    form = _form(flat)
    near, far = _factors(form, flat)
    for block in _blocks(flat):
        batch = block.batch
        top, bottom = _ratio(form, near[block][:, :, None], far[batch, None], flat.weight[batch, None, None])
        ratio = top if bottom is None else top.div_(bottom)
        torch.sum(ratio, dim=-1, out=result[block])
    return result.view(*lead, query.shape[-2], key.shape[-2])


def gradients(upstream: Tensor, query: Tensor, key: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What `upstream`, the gradient of the scores, gives to each of the three, in the shape it has."""
    lead, flat = _flat(query, key, weight)
    upstream = upstream.reshape(flat.query.shape[0], query.shape[-2], key.shape[-2])
    to_query, to_key, to_weight = (torch.zeros_like(part) for part in flat)
    form = _form(flat)
    near, far = _factors(form, flat)
    for block in _blocks(flat):
        batch = block.batch
        tanh, slope = _slopes(form, near[block][:, :, None], far[batch, None])
        incoming = upstream[block][..., None]
        to_weight[batch] += tanh.mul_(incoming).sum((1, 2))
        slope.mul_(incoming)
        to_query[block] = slope.sum(2)
        to_key[batch] += slope.sum(1)
    made = to_query.mul_(flat.weight[:, None]), to_key.mul_(flat.weight[:, None]), to_weight
    shapes = query.shape, key.shape, weight.shape
    wide = [part.view(*lead, *part.shape[1:]) for part in made]
    return (wide[0].sum_to_size(shapes[0]), wide[1].sum_to_size(shapes[1]), wide[2].sum_to_size(shapes[2]))


def _flat(query: Tensor, key: Tensor, weight: Tensor) -> tuple[torch.Size, Flat]:
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], weight.shape[:-1])
    count = lead.numel()
    return lead, Flat(
        query.expand(*lead, -1, -1).reshape(count, *query.shape[-2:]),
        key.expand(*lead, -1, -1).reshape(count, *key.shape[-2:]),
        weight.expand(*lead, -1).reshape(count, weight.shape[-1]),
    )


def _blocks(flat: Flat) -> Iterator[Block]:
    """Whole batch entries while they fit a block, else some queries of one."""
    count, queries, hidden = flat.query.shape
    budget = BLOCK.get(flat.query.device.type, WIDE_BLOCK)
    per_query = max(1, flat.key.shape[1] * hidden)
    entries = max(1, budget // max(1, queries * per_query))
    rows = max(1, min(queries, budget // per_query))
    for first in range(0, count, entries):
        for start in range(0, queries, rows):
            yield Block(slice(first, first + entries), slice(start, start + rows))


def _form(flat: Flat) -> Form:
    """What the range of the inputs allows. Elsewhere than on the CPU tanh is cheap, and looking at values is not."""
    if flat.query.device.type != "cpu" or not flat.query.numel() or not flat.key.numel():
        return "direct"
    near, far = (float(torch.linalg.vector_norm(part, torch.inf)) for part in (flat.query, flat.key))
    if near <= 0.5 and far <= 0.5:
        return "small"
    return "plain" if 2 * (near + far) <= REACH[flat.query.dtype] else "direct"  # direct if not finite


def _factors(form: Form, flat: Flat) -> tuple[Tensor, Tensor]:
    if form == "direct":
        return flat.query, flat.key
    if form == "small":
        return torch.tanh(flat.query), torch.tanh(flat.key)
    return torch.exp(2 * flat.query), torch.exp(2 * flat.key)


def _ratio(form: Form, near: Tensor, far: Tensor, weight: Tensor) -> tuple[Tensor, Tensor | None]:
    """Numerator and denominator of w tanh."""
    if form == "direct":
        return (near + far).tanh_().mul_(weight), None
    bottom = torch.addcmul(near.new_ones(()), near, far)
    if form == "small":
        return torch.addcmul(weight * near, weight, far), bottom
    return torch.addcmul(-weight, weight * near, far), bottom


def _slopes(form: Form, near: Tensor, far: Tensor) -> tuple[Tensor, Tensor]:
    """tanh and its derivative."""
    if form == "plain":
        product = near * far
        inverse = (product + 1).reciprocal_()
        tanh = torch.add(product.new_ones(()), inverse, alpha=-2)
        return tanh, product.mul_(inverse).mul_(inverse).mul_(4)
    if form == "small":
        tanh = (near + far).div_(torch.addcmul(near.new_ones(()), near, far))
    else:
        tanh = (near + far).tanh_()
    return tanh, torch.addcmul(tanh.new_ones(()), tanh, tanh, value=-1)
