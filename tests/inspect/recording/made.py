"""Recordings for tests: every kind, of sizes that no two axes share."""

import torch
import torch.nn.functional as F

from regard.inspect.recording import DenseMap, Difference, FactoredMap, Factors, PooledMap, Sketch

H, G, L, S, D = 4, 2, 5, 7, 3


def weights(seed: int = 0) -> torch.Tensor:
    """Return rows that sum to 1."""
    return torch.randn(H, L, S, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def sketch_weights(table: torch.Tensor, step: tuple[int, int] = (2, 3), k: int = 2) -> Sketch:
    """Return the sketch of written weights, by their definitions."""
    mean = F.avg_pool2d(table, step, ceil_mode=True)
    peak = F.max_pool2d(table, step, ceil_mode=True)
    top = table.topk(k)
    entropy = -(table * table.clamp_min(1e-30).log()).sum(-1)
    return Sketch(entropy, table.sum(-2), top.values, top.indices, PooledMap(mean, peak, step))


def make_factors(seed: int = 0, reach: int | None = 2) -> tuple[Factors, torch.Tensor]:
    """Return factors, and the weights that they stand for, by the textbook."""
    generator = torch.Generator().manual_seed(seed)
    query, key = torch.randn(H, L, D, generator=generator), torch.randn(G, S, D, generator=generator)
    bias = torch.randn(H, 1, S, generator=generator)
    scores = query @ key.repeat_interleave(H // G, 0).mT + bias
    if reach is not None:
        scores = scores.masked_fill(torch.ones(L, S).triu(reach + 1).bool(), float("-inf"))
    return Factors(query, key, scores.logsumexp(-1), bias, reach), scores.softmax(-1)


def make_factored(seed: int = 0) -> FactoredMap:
    """Return a map of factors with its sketch."""
    own, table = make_factors(seed)
    return FactoredMap(sketch_weights(table), own)


def make_every_kind() -> dict[str, DenseMap | Sketch | FactoredMap | Difference]:
    """Return one map of each kind."""
    whole, other = DenseMap(weights()), DenseMap(weights(1))
    return {
        "whole": whole,
        "sketch": sketch_weights(weights(2)),
        "factored": make_factored(3),
        "difference": Difference(whole, other),
    }
