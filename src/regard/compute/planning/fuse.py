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
from regard.algebra.terms import per_head
from regard.compute.kernels.fused import fused, fused_with_total
from regard.compute.planning.rules import dense_bias


class Folded(NamedTuple):
    """A fused call's output, and what it takes to find any of its weights again: exp(score + bias − total)."""

    output: Float[Tensor, "*lead query value"]
    form: DotForm | None
    total: Float[Tensor, "*lead query"] | None
    raw: DotForm  # the form before its row and column were folded into it


def fuse(parts: Parts, query: Tensor, key: Tensor, value: Tensor, pairs: Pairs, *, square: bool) -> Folded:
    """The output of these pairs. `square`: they are a whole table with as many queries as keys."""
    raw, dense = scores_of(parts, query, key, pairs)
    if isinstance(parts.normalizer, LocalGaussian):
        return Folded(_local_p(parts, parts.normalizer, raw, dense, value, pairs), None, None, raw)
    if parts.normalizer.form == "softmax-plus-one":
        return Folded(_plus_one(parts, raw, dense, value, pairs), None, None, raw)
    # Rounded once, here, so that the weights are found again from the same numbers.
    form = raw.folded(keep_row=False).prepared()
    causal = type(parts.mask) is Causal and dense is None
    if not square:  # asked for itself: of lengths that are traced, `and` would leave a symbol
        causal = False
    bias = None if causal else mask_bias(parts, dense, form.query, pairs)
    output, total = fused(form.query, form.key, value, scale=form.scale, causal=causal, bias=bias)
    if bias is not None and torch.compiler.is_exporting():  # other runtimes do not know that nothing gives zeros
        output = output.masked_fill((bias == float("-inf")).all(-1, keepdim=True), 0.0)
    return Folded(output, form, total, raw)


def scores_of(parts: Parts, query: Tensor, key: Tensor, pairs: Pairs) -> tuple[DotForm, Tensor | None]:
    """The dot form of score, bias and temperature, and what of the bias is left as a dense table."""
    form = as_dot(parts.score).dot_form(query, key)
    if parts.bias is not None and not dense_bias(parts, pairs.keys):
        form = form.plus_column(parts.bias.column(pairs).to(query.dtype))
    factor = inverse_temperature(parts)
    return form if factor is None else form.times(factor), dense_table(parts, query, pairs)


def dense_table(parts: Parts, like: Tensor, pairs: Pairs) -> Tensor | None:
    """What of the bias differs from pair to pair, over the temperature."""
    if parts.bias is None or not dense_bias(parts, pairs.keys):
        return None
    table: Tensor = parts.bias(pairs).to(like.dtype)
    factor = inverse_temperature(parts)
    return table if factor is None else table * factor


def inverse_temperature(parts: Parts) -> float | Tensor | None:
    """One over the temperature of the softmax; None where that is one."""
    if not isinstance(parts.normalizer, Softmax):
        return None
    temperature = parts.normalizer.temperature
    if not isinstance(temperature, Tensor) and temperature == 1.0:
        return None
    return 1.0 / per_head(temperature)


def mask_bias(parts: Parts, dense: Tensor | None, like: Tensor, pairs: Pairs) -> Tensor | None:
    """Mask and dense bias as one float table: −inf where the pair is not allowed."""
    if parts.mask.free(pairs.queries):
        return dense
    allowed = parts.mask.allowed(pairs)
    table = torch.zeros((), dtype=like.dtype, device=like.device) if dense is None else dense
    return torch.where(allowed, table, float("-inf"))


def _plus_one(parts: Parts, form: DotForm, dense: Tensor | None, value: Tensor, pairs: Pairs) -> Tensor:
    """One more key, all zeros, of score 0 and value 0, that every query may see."""
    form = form.folded(keep_row=True).prepared()
    bias = mask_bias(parts, dense, form.query, pairs)
    if bias is not None:
        keys = pairs.column.shape[-1]
        bias = F.pad(bias.expand(*bias.shape[:-1], keys), (0, 1))
    longer = F.pad(form.key, (0, 0, 0, 1))
    return fused(form.query, longer, F.pad(value, (0, 0, 0, 1)), scale=form.scale, bias=bias).output


def _local_p(
    parts: Parts, local: LocalGaussian, form: DotForm, dense: Tensor | None, value: Tensor, pairs: Pairs
) -> Tensor:
    """softmax(s)·g = softmax(s + log g) · exp(total of s + log g − total of s)."""
    # Both totals lack the row, so that their ratio does not.
    plain = replace(form, row=None).folded(keep_row=False).prepared()
    faded = plain + _slope(local, pairs, plain.query)
    bias = mask_bias(parts, dense, plain.query, pairs)
    fade = local.fade(pairs).detach().to(plain.query.dtype)
    output, with_fade = fused_with_total(
        faded.query, faded.key, value, scale=faded.scale, bias=fade if bias is None else bias + fade
    )
    narrow = value[..., :1].detach()
    _, without = fused_with_total(plain.query, plain.key, narrow, scale=plain.scale, bias=bias)
    return output * (with_fade - without).exp()[..., None].to(output.dtype)


def _slope(local: LocalGaussian, pairs: Pairs, like: Tensor) -> DotForm:
    """A form that is zero in value and has the gradient of the log-Gaussian to the center.

    The Gaussian itself goes into the kernel as a table, which keeps its digits but gets no gradient. Its derivative
    to the center is (column − center) / deviation²: linear in the column, so two coordinates that are zero bring it.
    """
    center = local.center[..., pairs.row[:, 0]]
    step = (center - center.detach()) / local.deviation**2
    offset = -step * center.detach()
    columns = pairs.column[0].to(like.dtype)
    keys = torch.stack([columns, torch.ones_like(columns)], dim=-1)
    return DotForm(torch.stack([step, offset], dim=-1).to(like.dtype), keys)
