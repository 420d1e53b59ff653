r"""The best tokens of each hypothesis, and what turns their scores into log-probabilities.

$$ \log p_{iv} = z_{iv} - \log \sum_{v'} e^{z_{iv'}} $$

with $z$ = `scores`. A search wants the few best of each row: one pass finds them and the total, where torch would write
out all log-probabilities and then sort a copy of them.
"""

from typing import NamedTuple

import torch

from regard.numerics import native
from regard.shapes import Float, Int, Tensor

WORTH_COMPILING = 1 << 16  # scores; a library that is there already is used for any size
MOST = 64  # from which inserting one after another is no longer the fast way
SUFFIX = {torch.float32: "float", torch.float64: "double"}


class Ranked(NamedTuple):
    """The best scores of each row, best first, their places, and the log of the sum of all exponentials."""

    scores: Float[Tensor, "row count"]
    tokens: Int[Tensor, "row count"]
    totals: Float[Tensor, " row"]


def rank(scores: Float[Tensor, "row vocabulary"], count: int, excluded: Int[Tensor, " some"]) -> Ranked:
    """The `count` best of each row. Those in `excluded` are not among them, but count in the total.

    >>> rank(torch.tensor([[0.0, 3.0, 1.0, 2.0]]), 2, torch.tensor([1])).tokens
    tensor([[3, 2]])
    """
    count = min(count, scores.shape[1] - len(excluded))
    plain = scores.device.type == "cpu" and scores.dtype in SUFFIX and not scores.requires_grad
    library = native.library(build=scores.numel() >= WORTH_COMPILING) if plain and 0 < count <= MOST else None
    if library is None:
        return _rank(scores, count, excluded)
    rows, size = scores.shape
    scores, excluded = scores.contiguous(), excluded.contiguous()
    best, totals = torch.empty(rows, count, dtype=scores.dtype), torch.empty(rows, dtype=scores.dtype)
    tokens = torch.empty(rows, count, dtype=torch.int64)
    kinds = (*(native.SIZE,) * 5, *(native.POINTER,) * 5)
    run = library.function(f"regard_rank_{SUFFIX[scores.dtype]}", *kinds)
    places = [tensor.data_ptr() for tensor in (excluded, scores, best, tokens, totals)]
    run(torch.get_num_threads(), rows, size, count, len(excluded), *places)
    return Ranked(best, tokens, totals)


def _rank(scores: Tensor, count: int, excluded: Tensor) -> Ranked:
    """The same in torch."""
    allowed = scores.index_fill(1, excluded, float("-inf")) if len(excluded) else scores
    best, tokens = allowed.topk(count, dim=1)
    return Ranked(best, tokens, scores.logsumexp(1))
