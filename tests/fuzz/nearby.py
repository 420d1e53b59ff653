"""The definition at scores that rounding could have given: a sparse slope jumps where a key enters."""

import torch

from regard.algebra.parts import Parts
from regard.algebra.scores import Score
from regard.compute.attend import AttentionResult
from regard.compute.verification import Reference, cast_parts, compute_reference
from tests.fuzz.reference import CLONES, BuiltTrial, find_alpha


class ShiftedScore(Score):
    """A score to whose numbers a fixed table is added."""

    def __init__(self, score: Score, table: torch.Tensor) -> None:
        super().__init__()
        self.score, self.table = score, table

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        shifted: torch.Tensor = self.score(query, key) + self.table
        return shifted

    def check(self, query: torch.Tensor, key: torch.Tensor) -> None:
        self.score.check(query, key)


@torch.no_grad()
def is_decided_by_rounding(built: BuiltTrial, dtype: torch.dtype) -> bool:
    """Return whether a rounding of the scores changes even the largest weight of a row beyond recognition.

    The largest weight w of a row is (α−1)(s−τ) to the power 1/(α−1). A score that moves by r moves its slope w^(2−α) by
    2(α−2) r / w^(α−1) of itself: seven equal keys and α = 20 make w^(α−1) = 9e-17, less than any rounding of a score.
    """
    alpha = find_alpha(built.exact.normalizer)
    if alpha is None or not built.true.weights.numel():
        return False
    largest = built.true.weights.max(-1)
    scores = built.compute_logits().expand(built.true.weights.shape).gather(-1, largest.indices[..., None])
    moved = 2 * (torch.as_tensor(alpha) - 2) * 2 * torch.finfo(dtype).eps * scores.abs()
    seen = largest.values[..., None] > 0
    return bool((seen & (moved > largest.values[..., None] ** (alpha - 1))).any())


def infer_scores(scores: torch.Tensor, weights: torch.Tensor, alpha: float | torch.Tensor) -> torch.Tensor:
    """Return the scores nearest to these of which the weights come: τ + w^(α−1) / (α−1), or at most τ if w is 0."""
    powers = weights ** (alpha - 1) / (alpha - 1)
    best = weights.argmax(-1, keepdim=True)
    threshold = scores.gather(-1, best) - powers.gather(-1, best)
    return torch.where(weights > 0, threshold + powers, torch.minimum(scores, threshold))


@torch.no_grad()
def measure_radius(built: BuiltTrial) -> float:
    """Return how far rounding may move a score: twice the definition's own error in the dtype, and one rounding."""
    size, error = 0.0, 0.0
    for factor in CLONES:
        tensors = [tensor.detach() * factor for tensor in built.clean[:2]]
        found = built.parts.score(*tensors).double()
        true = cast_parts(built.parts, torch.float64).score(*(tensor.double() for tensor in tensors))
        size, error = max(size, float(true.abs().max())), max(error, float((found - true).abs().max()))
    return 2 * (error + torch.finfo(built.dtype).eps * size)


def compute_nearby(built: BuiltTrial, found: AttentionResult) -> Reference | None:
    """Return the definition where its scores are moved toward those of the found weights, as far as rounding may.

    The slope of a sparse normalizer jumps (α = 2) or is steep without bound (α > 2, and nearly so below) where a weight
    becomes 0, so that a rounding of one score decides about the gradient. None if the normalizer is not sparse.
    """
    alpha = find_alpha(built.exact.normalizer)
    if alpha is None or not built.trial.keys:
        return None
    parts: Parts = built.exact
    with torch.no_grad():
        weights = found.weights.dense().double()
        scores = built.compute_logits().expand(weights.shape)
        table = infer_scores(scores, weights, alpha) - scores
        table = torch.where(built.true.weights.expand(weights.shape) + weights > 0, table, 0.0)
        radius = measure_radius(built)
    score = ShiftedScore(parts.score, table.clamp(-radius, radius))
    return compute_reference(parts._replace(score=score), built.wide, dropout=built.trial.dropout)
