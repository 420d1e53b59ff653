"""One fused softmax attention, with the logarithm of its row totals if the kernel returns it."""

from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.flash import (
    explicit_attention,
    explicit_gradients,
    flash_attention,
    flash_attention_backward,
)


class KernelResult(NamedTuple):
    """Output, and for each query the log of the sum of exponentials of its scores (None: the kernel hides it)."""

    output: Float[Tensor, "*lead query value"]
    total: Float[Tensor, "*lead query"] | None


def fused_attention(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    *,
    scale: float | Tensor = 1.0,
    causal: bool = False,
    bias: Float[Tensor, "..."] | None = None,
) -> KernelResult:
    r"""Return $\mathrm{softmax}(c\, q k^\top + b)\, v$ by one kernel that never writes out the table.

    `causal` is for equal numbers of queries and keys. `bias` gets no gradient. CPU kernels want four axes and equal
    widths: axes are viewed and widths padded with zeros, which change no number.
    """
    if isinstance(scale, Tensor):
        query, scale = (query * scale).to(query.dtype), 1.0
    if query.dim() == key.dim() == value.dim() == 4 and query.shape[:2] == key.shape[:2] == value.shape[:2]:
        bias = bias if bias is None or bias.dim() == 4 else bias.reshape((1,) * (4 - bias.dim()) + bias.shape)
        return _attend_four_axes(query, key, value, scale, causal, bias)
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (
        reshape_to_four_axes(query, lead),
        reshape_to_four_axes(key, lead),
        reshape_to_four_axes(value, lead),
    )
    bias = None if bias is None else reshape_to_four_axes(bias, lead)
    output, total = _attend_four_axes(query, key, value, scale, causal, bias)
    total = None if total is None else total.reshape(*lead, total.shape[-1])
    return KernelResult(output.reshape(*lead, *output.shape[-2:]), total)


def reshape_to_four_axes(tensor: Tensor, lead: tuple[int, ...]) -> Tensor:
    """Return the tensor with exactly two lead axes; if there are more, the first ones are merged."""
    if len(lead) <= 2:
        front = (1,) * (2 - len(lead)) if len(lead) < 2 else ()
        return tensor.expand(*lead, *tensor.shape[-2:]).reshape(*lead, *front, *tensor.shape[-2:])
    return tensor.expand(*lead, *tensor.shape[-2:]).reshape(-1, lead[-1], *tensor.shape[-2:])


def _attend_four_axes(
    query: Tensor, key: Tensor, value: Tensor, scale: float, causal: bool, bias: Tensor | None
) -> KernelResult:
    if query.device.type != "cpu":
        return KernelResult(
            F.scaled_dot_product_attention(query, key, value, bias, is_causal=causal, scale=scale), None
        )
    width = value.shape[-1]
    query, key, value = _pad_to_equal_widths(query, key, value)
    if torch.is_grad_enabled() and _needs_grad(query, key, value) and not torch.compiler.is_compiling():
        output, total = _FlashAttention.apply(query, key, value, bias, scale, causal)  # type: ignore[no-untyped-call]
    else:
        output, total = flash_attention(query, key, value, causal=causal, bias=bias, scale=scale)
    return KernelResult(output if output.shape[-1] == width else output[..., :width], total)


def _pad_to_equal_widths(query: Tensor, key: Tensor, value: Tensor, room: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tensors with zeros behind the narrower ones, and behind all so that the value has `room` more."""
    dim, own = query.shape[-1], value.shape[-1] + room
    if dim == own and not room:
        return query, key, value
    width = max(dim, own)
    if width > dim:
        query, key = F.pad(query, (0, width - dim)), F.pad(key, (0, width - dim))
    return query, key, F.pad(value, (0, width - value.shape[-1]))


def _needs_grad(query: Tensor, key: Tensor, value: Tensor) -> bool:
    return query.requires_grad or key.requires_grad or value.requires_grad


class _FlashAttention(torch.autograd.Function):
    """Fused attention with derivatives of every order; torch's own has the first alone."""

    @staticmethod
    def forward(ctx, query, key, value, bias, scale, causal):  # type: ignore[no-untyped-def]
        output, total = flash_attention(query, key, value, bias=bias, scale=scale, causal=causal)
        ctx.save_for_backward(query, key, value, bias, output, total)
        ctx.options = {"scale": scale, "causal": causal}
        ctx.mark_non_differentiable(total)
        return output, total

    @staticmethod
    def backward(ctx, grad_output, _grad_total):  # type: ignore[no-untyped-def]
        query, key, value, bias, output, total = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            again = partial(explicit_attention, bias=bias, **ctx.options)
            return *explicit_gradients(again, (query, key, value), (grad_output, None)), None, None, None
        grads = flash_attention_backward(grad_output, query, key, value, output, total, bias=bias, **ctx.options)
        return *grads, None, None, None


class _FlashAttentionWithTotal(torch.autograd.Function):
    r"""Fused attention whose row totals have a gradient too.

    With $g$ the gradient of the log total, the gradient of a score is
    $p_{ij} (dO_i \cdot v_j + g_i - dO_i \cdot O_i)$. The kernel's own backward computes that if the value gets a
    coordinate 1 whose output gradient is $g$, and the output is given as 0 there.
    """

    @staticmethod
    def forward(ctx, query, key, value, bias, scale):  # type: ignore[no-untyped-def]
        output, total = flash_attention(query, key, value, bias=bias, scale=scale)
        ctx.save_for_backward(query, key, value, bias, output, total)
        ctx.scale = scale
        return output, total

    @staticmethod
    def backward(ctx, grad_output, grad_total):  # type: ignore[no-untyped-def]
        query, key, value, bias, output, total = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            again = partial(explicit_attention, bias=bias, scale=ctx.scale)
            return *explicit_gradients(again, (query, key, value), (grad_output, grad_total)), None, None
        ones, gradient = value.clone(), grad_output.clone()
        ones[..., -1], gradient[..., -1] = 1.0, grad_total.to(gradient.dtype)
        grads = flash_attention_backward(gradient, query, key, ones, output, total, bias=bias, scale=ctx.scale)
        grad_value = grads[2].clone()
        grad_value[..., -1] = 0.0
        return grads[0], grads[1], grad_value, None, None


def fused_attention_with_total(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    *,
    scale: float | Tensor = 1.0,
    bias: Float[Tensor, "..."] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the same on the CPU, with a gradient of the log totals."""
    if isinstance(scale, Tensor):
        query, scale = (query * scale).to(query.dtype), 1.0
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    width = value.shape[-1]
    query, key, value = (
        reshape_to_four_axes(query, lead),
        reshape_to_four_axes(key, lead),
        reshape_to_four_axes(value, lead),
    )
    four = _pad_to_equal_widths(query, key, value, room=1)
    bias = None if bias is None else reshape_to_four_axes(bias, lead)
    output, total = _FlashAttentionWithTotal.apply(*four, bias, scale)  # type: ignore[no-untyped-call]
    output = output[..., :width]
    return output.reshape(*lead, *output.shape[-2:]), total.reshape(*lead, total.shape[-1])
