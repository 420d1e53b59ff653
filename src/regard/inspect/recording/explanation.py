"""What made one weight: the terms of its score, what is added to it, and how the row is normalized."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from regard.algebra.shapes import Float, Tensor
from regard.inspect.recording.origin import Origin

DIMENSIONS = 4096  # of a vector, that are given to a page
BLOCK = 4096  # keys whose terms are computed at once


@dataclass(frozen=True, slots=True)
class ScoreFacts:
    """What is known of a score and its row, if the vectors were kept.

    `terms` has a number for each dimension, which add up to `score`. `total` is what the normalizer subtracts or
    divides by: the log of the sum of exponentials (softmax), the threshold τ (sparsemax, entmax), the sum of the scores
    (row-total), the largest of them (argmax); None if it has none. `norm` is the length of the value, and `norm_share`
    the share of weight × length.
    """

    origin: Origin
    head: int
    query: int
    key: int
    terms: Float[Tensor, " dim"]
    score: float
    bias: float
    total: float | None
    norm: float | None
    norm_share: float | None

    @property
    def is_hidden(self) -> bool:
        """Whether a mask hides the key."""
        return self.bias == float("-inf")

    @property
    def setting(self) -> float | None:
        """The temperature, α or shift of the normalizer."""
        return self.origin.get_setting(self.head)

    def recompute_weight(self) -> float | None:
        """Return the weight by the formula; None if it depends on more than its row."""
        if self.is_hidden:
            return 0.0
        return apply_normalizer(self.origin.normalizer, self.score + self.bias, self.total, self.setting)

    def to_json(self) -> dict[str, Any]:
        """Return it as the page reads it."""
        origin, key = self.origin, self.origin.get_keys(self.head, self.query)[self.key]
        factor = origin.get_factor(self.head, self.query)
        vectors = {"query": origin.query[self.head, self.query], "key": key, "factor": factor}
        texts = {"form": origin.form, "scoreName": origin.score, "normalizer": origin.normalizer}
        return {
            **{name: None if part is None else part[:DIMENSIONS].tolist() for name, part in vectors.items()},
            **texts,
            "score": self.score,
            "bias": None if self.is_hidden else self.bias,
            "hidden": self.is_hidden,
            "setting": self.setting,
            "total": self.total if self.total is None or math.isfinite(self.total) else None,
            "norm": self.norm,
            "normShare": self.norm_share,
        }


@dataclass(frozen=True, slots=True)
class CellExplanation:
    """One weight, its rank among the keys of its row (1 is the largest), the sum of the row, and how it was made.

    >>> from regard.inspect.recording import DenseMap
    >>> DenseMap(torch.tensor([[[0.5, 0.2, 0.3]]])).explain(0, 0, 2)
    0.3: 2nd of 3 keys, 30 % of its row; queries and keys were not kept
    """

    weight: float
    rank: int
    keys: int
    row_sum: float
    facts: ScoreFacts | None = None

    @property
    def share(self) -> float:
        """The share of the row; 0 if the row has no weight."""
        return self.weight / self.row_sum if self.row_sum else 0.0

    def __repr__(self) -> str:
        place = (
            f"{self.weight:.4g}: {format_ordinal(self.rank)} of {self.keys} keys, {100 * self.share:.3g} % of its row"
        )
        facts = self.facts
        if facts is None:
            return f"{place}; queries and keys were not kept"
        if facts.is_hidden:
            return f"{place}; hidden by the mask"
        largest = facts.terms.abs().topk(min(3, len(facts.terms))).indices.tolist()
        terms = ", ".join(f"{facts.terms[one]:+.3g} (dimension {one})" for one in largest)
        return f"{place}; {facts.origin.score} {facts.score:.4g}, most by {terms}; bias {facts.bias:.4g}"

    def to_json(self) -> dict[str, Any]:
        """Return it as the page reads it."""
        known = {"weight": self.weight, "rank": self.rank, "keys": self.keys, "rowSum": self.row_sum}
        return {**known, "facts": None if self.facts is None else self.facts.to_json()}


def explain_cell(
    weights: Float[Tensor, " key"], origin: Origin | None, head: int, query: int, key: int
) -> CellExplanation:
    """Return what made the weight of one key, from the weights of its row and what they were computed from."""
    weight = float(weights[key])
    rank = 1 + int((weights.abs() > abs(weight)).sum())
    facts = None if origin is None else find_score_facts(weights, origin, head, query, key)
    return CellExplanation(weight, rank, len(weights), float(weights.sum()), facts)


def find_score_facts(weights: Float[Tensor, " key"], origin: Origin, head: int, query: int, key: int) -> ScoreFacts:
    """Return the score of one cell and what its row is normalized by."""
    terms = origin.compute_terms(head, query, slice(key, key + 1))[0]
    scores, bias = sum_terms(origin, head, query), origin.get_bias(head, query)
    total = find_total(origin.normalizer, (scores + bias).double(), weights.double(), origin.get_setting(head))
    norms, norm, share = origin.get_norms(head), None, None
    if norms is not None:
        added = weights * norms
        norm, share = float(norms[key]), float(added[key] / added.sum().clamp_min(torch.finfo(added.dtype).tiny))
    return ScoreFacts(
        origin, head, query, key, terms, float(terms.double().sum()), float(bias[key]), total, norm, share
    )


def sum_terms(origin: Origin, head: int, query: int) -> Float[Tensor, " key"]:
    """Return the scores of one query, some keys at a time."""
    parts = (slice(start, start + BLOCK) for start in range(0, origin.shape[2], BLOCK))
    return torch.cat([origin.compute_terms(head, query, part).sum(-1) for part in parts])


def find_total(normalizer: str, scores: Tensor, weights: Tensor, setting: float | None) -> float | None:
    """Return what the weights of a row are computed with beside their scores; None if not a number."""
    seen = scores > float("-inf")
    if not bool(seen.any()) or normalizer == "sigmoid":
        return None
    if normalizer == "softmax":
        return float((scores / (setting or 1.0)).logsumexp(0))
    if normalizer == "softmax-plus-one":
        return float(torch.cat([scores, scores.new_zeros(1)]).logsumexp(0))
    if normalizer in ("row-total", "argmax"):
        return float(scores[seen].sum() if normalizer == "row-total" else scores.max())
    if normalizer == "entmax" and setting is not None:
        best = int(weights.argmax())
        if setting == 1.0:
            return float(scores.logsumexp(0))
        return float((setting - 1) * scores[best] - weights[best] ** (setting - 1))
    return None


def apply_normalizer(normalizer: str, score: float, total: float | None, setting: float | None) -> float | None:
    """Return a weight from its score, bias included; None if that is not enough to know it."""
    if normalizer == "sigmoid":
        return 1 / (1 + math.exp(-score - (setting or 0.0)))
    if total is None:
        return None
    if normalizer == "softmax" or (normalizer == "entmax" and setting == 1.0):
        return math.exp(score / (setting or 1.0) - total)
    if normalizer == "softmax-plus-one":
        return math.exp(score - total)
    if normalizer == "row-total":
        return score / total if total else 0.0
    if normalizer == "argmax":
        return float(score >= total - 1e-6 * abs(total))
    if normalizer == "entmax" and setting is not None:
        return float(max(0.0, (setting - 1) * score - total) ** (1 / (setting - 1)))
    return None


def format_ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th …

    >>> [format_ordinal(number) for number in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
