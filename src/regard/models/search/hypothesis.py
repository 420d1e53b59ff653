"""What a search is: its steps, the trace of them, and the hypotheses that are read from it."""

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import torch

from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.errors import wrong
from regard.models.interface import Alignment, Decoder, EncoderOutput

SPARE = 8  # finished rows are removed when one in so many is finished: removing costs a copy


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The tokens that begin and end a target, and those that are never predicted (padding)."""

    begin: int
    end: int
    never: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.end in self.never:
            raise wrong("never", self.end, "tokens other than the end", "leave the end token out")


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """A complete target: its tokens without begin and end, and its scores.

    `log_prob` is that of the tokens and the end; hypotheses are ranked by `score`. `weights` has a row over the source
    for each token and for the end, if they were asked for and the decoder has attention.
    """

    tokens: tuple[int, ...]
    score: float
    log_prob: float
    weights: Float[Tensor, "step source"] | None = None


class SearchStep(NamedTuple):
    """One step of a search: the weights of its rows, and the tokens and parents of the rows that go on.

    `parents` are rows of this step. `log_probs` are those of the rows that go on, `ending` those of the rows that end
    here; −inf means that there is no such hypothesis.
    """

    weights: Float[Tensor, "row source"] | None
    tokens: Int[Tensor, " later"]
    parents: Int[Tensor, " later"]
    log_probs: Float[Tensor, " later"]
    ending: Float[Tensor, " row"]


@dataclass(slots=True)
class SearchTrace:
    """All steps of one search. The rows of a step are those that went on from the step before."""

    steps: list[SearchStep] = field(default_factory=list)

    def backtrack(self, ends: Int[Tensor, " found"], rows: Int[Tensor, " found"]) -> tuple[Tensor, Tensor | None]:
        """Return the tokens `(found, step)` and weights `(found, step, source)` of hypotheses that ended at the steps
        `ends` in these rows. What is behind an end is undefined.
        """
        steps = int(ends.max()) + 1 if len(ends) else 0
        tokens = torch.zeros(len(rows), steps, dtype=torch.long, device=rows.device)
        first = self.steps[0].weights if self.steps else None
        weights = None if first is None else first.new_zeros(len(rows), steps, first.shape[1])
        rows = rows.clone()
        for step in range(steps - 1, -1, -1):
            record, going = self.steps[step], ends > step
            if going.any():
                now = rows[going]
                tokens[going, step] = record.tokens[now]
                rows[going] = record.parents[now]
            if weights is not None and record.weights is not None:
                alive = ends >= step
                weights[alive, step] = record.weights[rows[alive]]
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
        """Return no hypotheses yet."""
        scores = like.new_full((sentences, best), float("-inf"))
        places = torch.zeros(sentences, best, dtype=torch.long, device=like.device)
        return cls(scores, scores.clone(), places, places.clone())

    def merge_best(self, others: "CompleteHypotheses") -> "CompleteHypotheses":
        """Return the best of both, best first."""
        joined = [torch.cat(pair, dim=1) for pair in zip(self, others, strict=True)]
        scores, order = joined[0].topk(self.scores.shape[1], dim=1)
        return CompleteHypotheses(scores, *(part.gather(1, order) for part in joined[1:]))

    def build_hypotheses(self, trace: SearchTrace, lengths: Int[Tensor, " sentence"]) -> list[list[Hypothesis]]:
        """Return all of them as hypotheses of sources of these lengths."""
        tokens, weights = trace.backtrack(self.ends.flatten(), self.rows.flatten())
        best, results = self.scores.shape[1], []
        numbers = zip(*(part.flatten().tolist() for part in self[:3]), tokens.tolist(), strict=True)
        for index, (score, log_prob, end, row) in enumerate(numbers):
            own = None if weights is None else weights[index, : end + 1, : lengths[index // best]].clone()
            results.append(Hypothesis(tuple(row[:end]), score, log_prob, own))
        sentences = [results[start : start + best] for start in range(0, len(results), best)]
        return [[one for one in several if one.score > float("-inf")] for several in sentences]


# A search, step by step, that returns what it has found.
SearchSteps: TypeAlias = Generator[SearchStep, None, CompleteHypotheses]


class Search(ABC):
    """A search with a decoder: `run` yields its steps, `find` runs all of them.

    With `attention`, the steps and the hypotheses have their weights. Each sentence has `rows_per_sentence` hypotheses
    that are found independently.
    """

    def __init__(
        self, decoder: Decoder[Any], marks: SpecialTokens, *, attention: bool, rows_per_sentence: int = 1
    ) -> None:
        self.decoder, self.marks, self.attention = decoder, marks, attention
        self.rows_per_sentence = rows_per_sentence

    @abstractmethod
    def run(self, encoded: EncoderOutput, most: Int[Tensor, " batch"]) -> SearchSteps:
        """Search step by step; `most` is the number of tokens after which a hypothesis has to end."""

    def find(self, encoded: EncoderOutput, limit: int | Int[Tensor, " batch"]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each row, best first. After `limit` tokens a hypothesis has to end."""
        trace = SearchTrace()
        with torch.inference_mode():
            steps = self.run(encoded, expand_limit(limit, encoded.lengths))
            while True:
                try:
                    trace.steps.append(next(steps))
                except StopIteration as over:
                    found: CompleteHypotheses = over.value
                    break
        return found.build_hypotheses(trace, encoded.lengths.repeat_interleave(self.rows_per_sentence))

    def read_weights(self, weights: Alignment | None, rows: int) -> Float[Tensor, "row source"] | None:
        """Return the weights of the rows of a step, if they are wanted and the decoder has attention."""
        return weights.dense().reshape(rows, -1) if self.attention and weights is not None else None


def expand_limit(limit: int | Int[Tensor, " batch"], lengths: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
    """Return the most tokens before the end, for each sentence."""
    each = torch.full_like(lengths, limit) if isinstance(limit, int) else limit.to(lengths)
    if len(each) and int(each.min()) < 0:
        raise wrong("limit", int(each.min()), "at least 0", "allow some tokens before the end")
    return each


def find_kept_rows(finished: Bool[Tensor, " row"]) -> Int[Tensor, " kept"]:
    """Return the rows to go on with: those that are not finished, and finished ones while they are few."""
    if int(finished.sum()) * SPARE < len(finished):
        return torch.arange(len(finished), device=finished.device)
    return (~finished).nonzero()[:, 0]
