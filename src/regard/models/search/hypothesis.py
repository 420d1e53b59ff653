"""What a search finds, and how what it did is traced back."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import torch

from regard.algebra.shapes import Float, Int, Tensor
from regard.errors import wrong
from regard.models.interface import Alignment


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The tokens that are no words: what a target begins and ends with, and what is never said (padding)."""

    begin: int
    end: int
    never: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.end in self.never:
            raise wrong("never", self.end, "tokens other than the end", "leave the end token out")


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """A complete target: its tokens without begin and end, and what was thought of it.

    `log_prob` is that of the tokens and the end; `score` is what hypotheses were ranked by. `weights` has a row over
    the source for each token and for the end, where they were asked for and the decoder looks at all.
    """

    tokens: tuple[int, ...]
    score: float
    log_prob: float
    weights: Float[Tensor, "step source"] | None = None


class SearchStep(NamedTuple):
    """One step as it is remembered: where its rows looked, and what those that went on said and came from.

    `parents` are rows of this step. `log_probs` are those of the rows that went on, `ending` those of the rows that
    ended here; −inf means that there is no such hypothesis.
    """

    weights: Float[Tensor, "row source"] | None
    tokens: Int[Tensor, " later"]
    parents: Int[Tensor, " later"]
    log_probs: Float[Tensor, " later"]
    ending: Float[Tensor, " row"]


@dataclass(slots=True)
class SearchTrace:
    """All steps of one search. A step's rows are those that went on from the step before."""

    steps: list[SearchStep] = field(default_factory=list)

    def backtrack(self, ends: Int[Tensor, " found"], rows: Int[Tensor, " found"]) -> tuple[Tensor, Tensor | None]:
        """The tokens `(found, step)` of hypotheses that ended at the steps `ends` in these rows, and where they looked
        `(found, step, source)`. What lies behind an end means nothing.
        """
        steps = int(ends.max()) + 1 if len(ends) else 0
        tokens = torch.zeros(len(rows), steps, dtype=torch.long, device=rows.device)
        looked = self.steps[0].weights if self.steps else None
        weights = None if looked is None else looked.new_zeros(len(rows), steps, looked.shape[1])
        rows = rows.clone()
        for step in range(steps - 1, -1, -1):
            moment, going = self.steps[step], ends > step
            if going.any():
                now = rows[going]
                tokens[going, step] = moment.tokens[now]
                rows[going] = moment.parents[now]
            if weights is not None and moment.weights is not None:
                there = ends >= step
                weights[there, step] = moment.weights[rows[there]]
        return tokens, weights


class CompleteHypotheses(NamedTuple):
    """Complete hypotheses, sentence by sentence: the step and row where each ended, its score and probability.

    A score of −inf means that there is none.
    """

    scores: Float[Tensor, "sentence best"]
    log_probs: Float[Tensor, "sentence best"]
    ends: Int[Tensor, "sentence best"]
    rows: Int[Tensor, "sentence best"]

    @classmethod
    def create_empty(cls, sentences: int, best: int, like: Tensor) -> "CompleteHypotheses":
        """Nothing yet."""
        scores = like.new_full((sentences, best), float("-inf"))
        places = torch.zeros(sentences, best, dtype=torch.long, device=like.device)
        return cls(scores, scores.clone(), places, places.clone())

    def merge_best(self, others: "CompleteHypotheses") -> "CompleteHypotheses":
        """The best of both, best first."""
        joined = [torch.cat(pair, dim=1) for pair in zip(self, others, strict=True)]
        scores, order = joined[0].topk(self.scores.shape[1], dim=1)
        return CompleteHypotheses(scores, *(part.gather(1, order) for part in joined[1:]))

    def build_hypotheses(self, trace: SearchTrace, lengths: Int[Tensor, " sentence"]) -> list[list[Hypothesis]]:
        """All of them in words of Python, for sources of these lengths."""
        tokens, weights = trace.backtrack(self.ends.flatten(), self.rows.flatten())
        best, results = self.scores.shape[1], []
        numbers = zip(*(part.flatten().tolist() for part in self[:3]), tokens.tolist(), strict=True)
        for place, (score, log_prob, end, said) in enumerate(numbers):
            looked = None if weights is None else weights[place, : end + 1, : lengths[place // best]].clone()
            results.append(Hypothesis(tuple(said[:end]), score, log_prob, looked))
        sentences = [results[start : start + best] for start in range(0, len(results), best)]
        return [[found for found in own if found.score > float("-inf")] for own in sentences]


SearchSteps: TypeAlias = Generator[
    SearchStep, None, CompleteHypotheses
]  # a search, step by step, and what it has found


def run_to_end(walk: SearchSteps) -> tuple[CompleteHypotheses, SearchTrace]:
    """A search to its end."""
    trace = SearchTrace()
    while True:
        try:
            trace.steps.append(next(walk))
        except StopIteration as over:
            return over.value, trace


def compute_row_weights(weights: Alignment | None, rows: int, *, wanted: bool) -> Float[Tensor, "row source"] | None:
    """Where the rows of a step looked, if that is wanted and known."""
    return weights.dense().reshape(rows, -1) if wanted and weights is not None else None


def expand_limit(limit: int | Int[Tensor, " batch"], lengths: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
    """The most tokens before the end, for each sentence."""
    each = torch.full_like(lengths, limit) if isinstance(limit, int) else limit.to(lengths)
    if len(each) and int(each.min()) < 0:
        raise wrong("limit", int(each.min()), "at least 0", "allow some tokens before the end")
    return each
