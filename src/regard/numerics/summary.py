"""What one pass over rows of weights tells, from scores and the log totals of their rows."""

import ctypes
import math
from typing import NamedTuple

import torch

from regard.numerics import native
from regard.numerics.native.reach import SUFFIX, library_for
from regard.shapes import Float, Int, Tensor


class Summed(NamedTuple):
    """Entropy of each row, mass of each column over the rows, and the largest weights with their columns."""

    entropy: Float[Tensor, "*lead row"]
    received: Float[Tensor, "*lead column"]
    weights: Float[Tensor, "*lead row k"]
    columns: Int[Tensor, "*lead row k"]


def summarize(
    scores: Float[Tensor, "*lead row column"], total: Float[Tensor, "*lead row"], scale: float, k: int
) -> Summed:
    r"""Entropy, mass received and the k largest of $w_{ij} = e^{c s_{ij} - t_i}$, with $c$ = `scale`, $t$ = `total`.

    >>> summarize(torch.zeros(1, 4), torch.tensor([math.log(4)]), 1.0, 1).entropy
    tensor([1.3863])
    """
    library = library_for(scores)
    if library is None:
        return _by_torch(scores, total, scale, k)
    scores, total = scores.contiguous(), total.to(scores.dtype).contiguous()
    *lead, rows, columns = scores.shape
    entropy, weights = scores.new_empty(*lead, rows), scores.new_empty(*lead, rows, k)
    places = torch.empty(*lead, rows, k, dtype=torch.int64)
    received = torch.zeros(*lead, columns, dtype=torch.float64)
    layout = (ctypes.c_int64 * 5)(torch.get_num_threads(), math.prod(lead), rows, columns, k)
    number = ctypes.c_float if scores.dtype == torch.float32 else ctypes.c_double
    pointers = [tensor.data_ptr() for tensor in (scores, total, entropy, received, weights, places)]
    kinds = [native.POINTER] * len(pointers)
    library.function(f"regard_summary_{SUFFIX[scores.dtype]}", native.POINTER, number, *kinds)(layout, scale, *pointers)
    return Summed(entropy, received.to(scores.dtype), weights, places)


def summary_of(weights: Float[Tensor, "*lead row column"], k: int) -> Summed:
    """The same of weights that are written out."""
    entropy: Tensor = torch.special.entr(weights).sum(-1)
    return Summed(entropy, _mass(weights), *weights.topk(k, dim=-1))


def _by_torch(scores: Tensor, total: Tensor, scale: float, k: int) -> Summed:
    logarithms = scores * scale - total[..., None]
    table = logarithms.exp()
    finite = logarithms.clamp_min(torch.finfo(table.dtype).min)  # a weight of 0 adds nothing, and 0 × −inf is NaN
    entropy: Tensor = torch.linalg.vecdot(table, finite)
    return Summed(-entropy, _mass(table), *table.topk(k, dim=-1))


def _mass(table: Tensor) -> Tensor:
    return table.sum(-2, dtype=torch.promote_types(table.dtype, torch.float32))
