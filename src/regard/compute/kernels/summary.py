"""Entropy, received mass and largest weights in one pass, from scores and the log totals of their rows."""

import ctypes
import math
from typing import NamedTuple

import torch

from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.compute.kernels import native
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX, find_library
from regard.errors import wrong


class TopWeights(NamedTuple):
    """The largest weights of each query, largest first, and the keys that they belong to."""

    weights: Float[Tensor, "*lead query k"]
    keys: Int[Tensor, "*lead query k"]


class RowSummary(NamedTuple):
    """Entropy of each row, mass of each column over the rows, and the largest weights.

    `total` is the logarithm of what each row was divided by; −inf if it sees nothing.
    """

    entropy: Float[Tensor, "*lead row"]
    received: Float[Tensor, "*lead column"]
    top: TopWeights
    total: Float[Tensor, "*lead row"]


def summarize(
    scores: Float[Tensor, "*lead row column"],
    total: Float[Tensor, "*lead row"] | None,
    scale: float,
    k: int,
    *,
    seen: int | None = None,
) -> RowSummary:
    r"""Return entropy, received mass and the k largest of $w_{ij} = e^{c s_{ij} - t_i}$: $c$ = `scale`, $t$ = `total`.

    If no total is given, it is that of a softmax: $t_i = \log \sum_j e^{c s_{ij}}$. Row $i$ sees the first
    `seen` + $i$ columns; all if it is None.

    >>> summarize(torch.zeros(1, 4), None, 1.0, 1).entropy
    tensor([1.3863])
    """
    if total is not None and total.shape != scores.shape[:-1]:
        raise wrong(
            "total", f"shape {tuple(total.shape)}", f"one for each row, {tuple(scores.shape[:-1])}", "expand it"
        )
    library = find_library(scores, total)
    if library is None:
        hidden = scores if seen is None else scores.masked_fill(mask_unseen(scores, seen), -math.inf)
        return _summarize_in_torch(hidden, total, scale, k)
    *lead, rows, columns = scores.shape
    given, scores = total is not None, tensor_memory.make_contiguous(scores)
    total = scores.new_empty(*lead, rows) if total is None else tensor_memory.make_contiguous(total.to(scores.dtype))
    entropy, weights = scores.new_empty(*lead, rows), scores.new_empty(*lead, rows, k)
    keys = scores.new_empty(*lead, rows, k, dtype=torch.int64)
    received = scores.new_zeros(*lead, columns, dtype=torch.float64)
    sizes = math.prod(lead), rows, columns, k, columns if seen is None else seen
    layout = (ctypes.c_int64 * 7)(torch.get_num_threads(), *sizes, given)
    number = ctypes.c_float if scores.dtype == torch.float32 else ctypes.c_double
    pointers = [tensor_memory.get_address(tensor) for tensor in (scores, total, entropy, received, weights, keys)]
    kinds = [native.POINTER] * len(pointers)
    library.function(f"regard_summary_{SUFFIX[scores.dtype]}", native.POINTER, number, *kinds)(layout, scale, *pointers)
    return RowSummary(entropy, received.to(scores.dtype), TopWeights(weights, keys), total)


def summarize_weights(weights: Float[Tensor, "*lead row column"], k: int) -> RowSummary:
    """Return the same of weights that are written out."""
    entropy: Tensor = torch.special.entr(weights).sum(-1)
    return RowSummary(entropy, _sum_columns(weights), TopWeights(*weights.topk(k, dim=-1)), torch.zeros_like(entropy))


def mask_unseen(scores: Float[Tensor, "*lead row column"], seen: int) -> Bool[Tensor, "row column"]:
    """Return True where row $i$ does not see a column: it sees the first `seen` + $i$.

    >>> mask_unseen(torch.zeros(2, 3), 1).tolist()
    [[False, True, True], [False, False, True]]
    """
    return torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu_(seen)


def _summarize_in_torch(scores: Tensor, total: Tensor | None, scale: float, k: int) -> RowSummary:
    scaled = scores * scale
    total = scaled.logsumexp(-1) if total is None else total
    logarithms = scaled - total.clamp_min(torch.finfo(total.dtype).min)[..., None]
    table = logarithms.exp()
    finite = logarithms.clamp_min(torch.finfo(table.dtype).min)  # a weight of 0 adds nothing, and 0 × −inf is NaN
    entropy: Tensor = torch.linalg.vecdot(table, finite)
    return RowSummary(-entropy, _sum_columns(table), TopWeights(*table.topk(k, dim=-1)), total)


def _sum_columns(table: Tensor) -> Tensor:
    return table.sum(-2, dtype=torch.promote_types(table.dtype, torch.float32))
