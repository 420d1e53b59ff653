r"""The best tokens of each hypothesis, and what turns their scores into log-probabilities.

$$ \log p_{iv} = z_{iv} - \log \sum_{v'} e^{z_{iv'}}, \qquad z_i = W x_i + b $$

with $x$ = `vectors`, $W$ = `weight` and $b$ = `bias`. A search wants the few best of each row. They and the total are
found in one pass over the vocabulary, a stretch of it at a time, while its scores are in the cache: torch would write
out all scores, then all log-probabilities, and then sort a copy of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels import native
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX, find_library
from regard.errors import wrong
from regard.models.kernels.prepacked import PrepackedMatrix

MOST_RANKED = 64  # from which inserting one after another is no longer the fast way
CHUNK = 1 << 19  # scores at a time: 2 MB in float32, which stay in the cache from the product to the ranking
PREPACKED_CHUNK = 1 << 11  # tokens of a prepacked matrix at a time: always the same, so that each is prepacked once


class Ranking(NamedTuple):
    """The best scores of each row, best first, their places, the log of the sum of all exponentials, and the scores of
    the tokens that were excluded."""

    scores: Float[Tensor, "row count"]
    tokens: Int[Tensor, "row count"]
    totals: Float[Tensor, " row"]
    excluded: Float[Tensor, "row some"]


def rank(
    vectors: Float[Tensor, "row width"],
    weight: Float[Tensor, "vocabulary width"] | None,
    bias: Float[Tensor, " vocabulary"] | None,
    count: int,
    excluded: Int[Tensor, " some"],
) -> Ranking:
    """Return the `count` best tokens of each row. Those in `excluded` are not among them, but count in the total.

    Without a `weight`, the vectors are scores already.

    >>> rank(torch.ones(1, 1), torch.tensor([[0.0], [3.0], [1.0], [2.0]]), None, 2, torch.tensor([1])).tokens
    tensor([[3, 2]])
    """
    if weight is None:
        return _rank_in_torch(vectors, min(count, vectors.shape[1] - len(excluded)), excluded)
    count, scores = min(count, len(weight) - len(excluded)), len(vectors) * len(weight)
    if bias is not None and bias.shape != weight.shape[:1]:
        raise wrong(
            "bias", f"shape {tuple(bias.shape)}", f"one for each of {len(weight)} tokens", "use the layer's own"
        )
    plain = vectors.dtype == weight.dtype and not torch.is_grad_enabled() and 0 < count <= MOST_RANKED
    read = None if isinstance(weight, PrepackedMatrix) else weight  # its product is not ours
    library = find_library(vectors, read, bias, excluded, size=scores) if plain else None
    if library is None:
        return _rank_in_torch(F.linear(vectors, weight, bias), count, excluded)
    return _rank_by_chunks(library, vectors, weight, bias, count, excluded)


def _rank_in_torch(scores: Tensor, count: int, excluded: Tensor) -> Ranking:
    """Rank in torch, from all scores."""
    allowed = scores.index_fill(1, excluded, float("-inf")) if len(excluded) else scores
    best, tokens = allowed.topk(count, dim=1)
    return Ranking(best, tokens, scores.logsumexp(1), scores.index_select(1, excluded))


def _rank_by_chunks(
    library: native.Library, vectors: Tensor, weight: Tensor, bias: Tensor | None, count: int, excluded: Tensor
) -> Ranking:
    """Rank by our own loop: the scores of one chunk of tokens after another, in the same memory."""
    rows, threads = len(vectors), torch.get_num_threads()
    ranked = Ranking(
        vectors.new_full((rows, count), float("-inf")),
        excluded.new_zeros(rows, count, dtype=torch.int64),
        vectors.new_zeros(rows),
        vectors.new_empty(rows, len(excluded)),
    )
    largest, bias = (
        vectors.new_full((rows,), float("-inf")),
        None if bias is None else tensor_memory.make_contiguous(bias.to(vectors.dtype)),
    )
    excluded = tensor_memory.make_contiguous(excluded.to(torch.int64))
    outside = excluded.tolist()
    kinds = (*(native.SIZE,) * 6, *(native.POINTER,) * 7)
    run = library.function(f"regard_rank_{SUFFIX[vectors.dtype]}", *kinds)
    for first, scores in _multiply_chunks(vectors, weight):
        last = first + scores.shape[1]
        added = None if bias is None else bias[first:last]
        places = (excluded, scores, added, ranked.scores, ranked.tokens, largest, ranked.totals)
        pointers = [tensor_memory.get_address(tensor) for tensor in places]
        run(threads, *scores.shape, first, count, len(excluded), *pointers)
        for place, token in enumerate(outside):
            if first <= token < last:
                own = scores[:, token - first]
                ranked.excluded[:, place] = own if added is None else own + added[token - first]
    return ranked._replace(totals=largest + ranked.totals.log())


def _multiply_chunks(vectors: Tensor, weight: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield the scores of one chunk of tokens after another with its first token, as long as they are in the cache."""
    rows = len(vectors)
    if isinstance(weight, PrepackedMatrix):
        for first in range(0, len(weight), PREPACKED_CHUNK):
            yield first, F.linear(vectors, weight[first : first + PREPACKED_CHUNK])
        return
    size = min(len(weight), max(1, CHUNK // max(1, rows)))
    room = vectors.new_empty(rows * size)
    for first in range(0, len(weight), size):
        part = weight[first : first + size]
        yield first, torch.mm(vectors, part.T, out=room[: rows * len(part)].view(rows, len(part)))
