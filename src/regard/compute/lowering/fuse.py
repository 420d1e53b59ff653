"""The lowering itself: parts and tensors into one or two fused calls."""

from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.algebra.masks import Causal
from regard.algebra.normalizers import LocalGaussian, Softmax
from regard.algebra.pairs import Pairs
from regard.algebra.parts import Parts
from regard.algebra.scores.base import DotForm, as_dot
from regard.algebra.shapes import Float, Tensor
from regard.algebra.terms import broadcast_per_head
from regard.compute.kernels.fused import fused_attention, fused_attention_with_total
from regard.compute.kernels.native import tensor_memory
from regard.compute.lowering.conditions import needs_dense_bias
from regard.compute.lowering.precision import LostDigitsError, loses_difference


class FusedResult(NamedTuple):
    """A fused call's output, and what it takes to find any of its weights again: exp(score + bias − total)."""

    output: Float[Tensor, "*lead query value"]
    form: DotForm | None
    total: Float[Tensor, "*lead query"] | None
    raw: DotForm  # the form before its row and column were folded into it


def fuse(parts: Parts, query: Tensor, key: Tensor, value: Tensor, pairs: Pairs, *, square: bool) -> FusedResult:
    """Return the output of these pairs. `square`: they are a whole table with as many queries as keys."""
    raw, dense = compute_dot_form(parts, query, key, pairs)
    if isinstance(parts.normalizer, LocalGaussian):
        return FusedResult(_fuse_local_p(parts, parts.normalizer, raw, dense, value, pairs), None, None, raw)
    if parts.normalizer.form == "softmax-plus-one":
        return FusedResult(_fuse_plus_one(parts, raw, dense, value, pairs), None, None, raw)
    # Rounded once, here, so that the weights are found again from the same numbers.
    form = raw.fold_offsets(keep_row=False).make_scale_positive()
    causal = type(parts.mask) is Causal and dense is None
    if not square:  # a test of its own: `and` would return a symbol if the lengths are traced
        causal = False
    bias = None if causal else build_mask_bias(parts, dense, form.query, pairs)
    output, total = fused_attention(form.query, form.key, value, scale=form.scale, causal=causal, bias=bias)
    if bias is not None and tensor_memory.is_exporting():  # other runtimes do not give zeros for an empty row
        output = output.masked_fill((bias == float("-inf")).all(-1, keepdim=True), 0.0)
    return FusedResult(output, form, total, raw)


def compute_dot_form(parts: Parts, query: Tensor, key: Tensor, pairs: Pairs) -> tuple[DotForm, Tensor | None]:
    """Return the dot form of score, bias and temperature, and the part of the bias that stays a dense table."""
    form = as_dot(parts.score).dot_form(query, key)
    if parts.bias is not None and not needs_dense_bias(parts, pairs.keys):
        form = form.add_column(parts.bias.column(pairs).to(query.dtype))
    factor = invert_temperature(parts, query)
    return form if factor is None else form.multiply(factor), build_dense_bias(parts, query, pairs)


def build_dense_bias(parts: Parts, like: Tensor, pairs: Pairs) -> Tensor | None:
    """Return the part of the bias that differs from pair to pair, over the temperature."""
    if parts.bias is None or not needs_dense_bias(parts, pairs.keys):
        return None
    table: Tensor = parts.bias(pairs).to(like.dtype)
    factor = invert_temperature(parts, like)
    return table if factor is None else table * factor


def invert_temperature(parts: Parts, like: Tensor) -> float | Tensor | None:
    """Return one over the temperature of the softmax; None if that is one."""
    if not isinstance(parts.normalizer, Softmax):
        return None
    temperature = parts.normalizer.temperature
    if not isinstance(temperature, Tensor) and temperature == 1.0:
        return None
    return 1.0 / broadcast_per_head(temperature, like)


def build_mask_bias(parts: Parts, dense: Tensor | None, like: Tensor, pairs: Pairs) -> Tensor | None:
    """Return mask and dense bias as one float table: −inf where the pair is not allowed."""
    if parts.mask.allows_all(pairs.queries):
        return dense
    allowed = parts.mask.allows(pairs)
    table = torch.zeros((), dtype=like.dtype, device=like.device) if dense is None else dense
    return torch.where(allowed, table, float("-inf"))


def _fuse_plus_one(parts: Parts, form: DotForm, dense: Tensor | None, value: Tensor, pairs: Pairs) -> Tensor:
    """Append a key of score 0 and value 0 that every query may see."""
    form = form.fold_offsets(keep_row=True).make_scale_positive()
    bias = build_mask_bias(parts, dense, form.query, pairs)
    if bias is not None:
        keys = pairs.column.shape[-1]
        bias = F.pad(bias.expand(*bias.shape[:-1], keys), (0, 1))
    longer = F.pad(form.key, (0, 0, 0, 1))
    return fused_attention(form.query, longer, F.pad(value, (0, 0, 0, 1)), scale=form.scale, bias=bias).output


def _fuse_local_p(
    parts: Parts, local: LocalGaussian, form: DotForm, dense: Tensor | None, value: Tensor, pairs: Pairs
) -> Tensor:
    """Use softmax(s)·g = softmax(s + log g) · exp(total of s + log g − total of s)."""
    # Both totals lack the row, so that their ratio does not.
    plain = replace(form, row=None).fold_offsets(keep_row=False).make_scale_positive()
    faded = plain + _build_center_gradient(local, pairs, plain.query)
    bias = build_mask_bias(parts, dense, plain.query, pairs)
    fade = local.log_gaussian(pairs, plain.query).detach().to(plain.query.dtype)
    output, with_fade = fused_attention_with_total(
        faded.query, faded.key, value, scale=faded.scale, bias=fade if bias is None else bias + fade
    )
    narrow = value[..., :1].detach()
    _, without = fused_attention_with_total(plain.query, plain.key, narrow, scale=plain.scale, bias=bias)
    if loses_difference(with_fade, without):
        raise LostDigitsError
    return output * (with_fade - without).exp()[..., None].to(output.dtype)


def _build_center_gradient(local: LocalGaussian, pairs: Pairs, like: Tensor) -> DotForm:
    """Return a form that is zero in value and has the gradient of the log-Gaussian by the center.

    The Gaussian itself goes into the kernel as a table, which keeps its digits but gets no gradient. Its derivative
    to the center is (column − center) / deviation²: linear in the column, so two coordinates that are zero bring it.
    """
    center = local.get_centers(pairs, like)
    step = (center - center.detach()) / local.deviation**2
    offset = -step * center.detach()
    columns = pairs.column[0].to(like.dtype)
    keys = torch.stack([columns, torch.ones_like(columns)], dim=-1)
    return DotForm(torch.stack([step, offset], dim=-1).to(like.dtype), keys)
