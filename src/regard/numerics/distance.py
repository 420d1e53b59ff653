r"""Distances of all pairs of vectors, difference by difference.

$$ d_{ij} = \sum_c |q_{ic} - k_{jc}|^p $$

Nothing is squared or added before it is subtracted: the distance of two points does not depend on where the others are,
and is as exact as the points themselves. Computed in float64 by `torch.cdist`, which writes no difference out.
"""

from typing import Any, Literal

import torch

from regard.numerics.native import gate
from regard.shapes import Float, Tensor

Power = Literal[1, 2]


def distances(
    query: Float[Tensor, "*#lead query dim"], key: Float[Tensor, "*#lead key dim"], power: Power
) -> Float[Tensor, "*lead query key"]:
    """Return the sums of the `power`-th powers of the differences, in float64.

    >>> distances(torch.zeros(1, 2), torch.tensor([[3.0, 4.0], [1.0, 0.0]]), 2)
    tensor([[25.,  1.]], dtype=torch.float64)
    """
    query, key = query.double(), key.double()
    if torch.compiler.is_compiling():
        return _fused(query, key, power)
    if gate.is_mapped() or not _plain(query, key):
        return _explicit(query, key, power)
    found: Tensor = _Distances.apply(query, key, power)  # type: ignore[no-untyped-call]
    return found


def _plain(*tensors: Tensor) -> bool:
    return all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in tensors)


def _fused(query: Tensor, key: Tensor, power: Power) -> Tensor:
    mode = "donot_use_mm_for_euclid_dist"
    found = torch.cdist(query, key, p=float(power), compute_mode=mode)
    return found.square() if power == 2 else found


def _explicit(query: Tensor, key: Tensor, power: Power) -> Tensor:
    """The definition, which has every derivative and transform, and writes the differences out."""
    apart = query[..., :, None, :] - key[..., None, :, :]
    return (apart.square() if power == 2 else apart.abs()).sum(-1)


class _Distances(torch.autograd.Function):
    """`_fused`, with a second derivative, which torch.cdist lacks, from the definition."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, power: Power) -> Tensor:
        ctx.save_for_backward(query, key)
        ctx.power, ctx.graph = power, None
        if not any(ctx.needs_input_grad):
            return _fused(query, key, power)
        with torch.enable_grad():
            near, far = (tensor.detach().requires_grad_() for tensor in (query, key))
            found = _fused(near, far, power)
        ctx.graph = found, (near, far)
        return found.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        if torch.is_grad_enabled():
            # Views of their own: if query and key are one tensor, each gets its own part of the gradient.
            near, far = (tensor.view_as(tensor) for tensor in ctx.saved_tensors)
            again = _explicit(near, far, ctx.power)
            own = [tensor for tensor in (near, far) if tensor.requires_grad]
            found = iter(torch.autograd.grad(again, own, grad, create_graph=True))
            return *(next(found) if tensor.requires_grad else None for tensor in (near, far)), None  # type: ignore[return-value]
        found, tensors = ctx.graph
        made = torch.autograd.grad(found, tensors, grad, retain_graph=True)
        wanted = ctx.needs_input_grad
        return made[0] if wanted[0] else None, made[1] if wanted[1] else None, None
