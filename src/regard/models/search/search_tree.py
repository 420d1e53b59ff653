"""The tree of hypotheses of a search, a step at a time."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from regard.algebra.shapes import Float, Int, Tensor
from regard.errors import wrong
from regard.models.interface import Decoder, EncoderOutput
from regard.models.search.beam import BeamOptions, BeamSearch
from regard.models.search.hypothesis import SearchStep, SearchSteps, SpecialTokens, expand_limit
from regard.models.search.sampling import SamplingOptions, SinglePathSearch, build_greedy_picker, build_sampling_picker
from regard.models.search.scorer import HypothesisScorer, compute_coverage_penalty

ROOT = -1  # what the first branches grow from


class Branch(NamedTuple):
    """A hypothesis with one more token than the branch with the number `parent`.

    `log_prob` is that of all its tokens, `weights` are those of this step. If this token is the end, `score` is what
    complete hypotheses are ranked by.
    """

    number: int
    parent: int
    token: int
    log_prob: float
    weights: Float[Tensor, " source"] | None
    score: float | None = None


def iterate_search(
    decoder: Decoder[Any],
    encoded: EncoderOutput,
    marks: SpecialTokens,
    limit: int | Int[Tensor, " batch"],
    *,
    options: BeamOptions | SamplingOptions | None = None,
) -> Iterator[list[Branch]]:
    """Yield the new branches of each step of one sentence's search, which is greedy without `options`.

    The same search as `greedy_search`, `beam_search` and `sample`, which return the branches that end.
    """
    if len(encoded.lengths) != 1:
        fix = "watch one after another"
        raise wrong("encoded", f"{len(encoded.lengths)} sentences", "one to be watched", fix)
    search = start_search(decoder, encoded, marks, expand_limit(limit, encoded.lengths), options)
    tree = SearchTree(marks.end, options.scoring if isinstance(options, BeamOptions) else HypothesisScorer())
    while True:
        with torch.inference_mode():  # not around the yield: the caller has a mode of its own
            step = next(search, None)
            if step is None:
                return
            branches = tree.add_step(step)
        yield branches


def start_search(
    decoder: Decoder[Any],
    encoded: EncoderOutput,
    marks: SpecialTokens,
    most: Int[Tensor, " batch"],
    options: BeamOptions | SamplingOptions | None,
) -> SearchSteps:
    """Start the search that these options describe."""
    if isinstance(options, BeamOptions):
        return BeamSearch(decoder, marks, options, attention=True).run(encoded, most)
    if options is None:
        pick = build_greedy_picker(marks, most.device)
        return SinglePathSearch(decoder, marks, pick, attention=True).run(encoded, most)
    draw = build_sampling_picker(marks, options, torch.zeros_like(most))
    return SinglePathSearch(decoder, marks, draw, attention=True, rows_per_sentence=options.count).run(encoded, most)


class SearchTree:
    """The rows of a search as branches with numbers."""

    def __init__(self, end: int, scoring: HypothesisScorer) -> None:
        self.end, self.scoring = end, scoring
        self.steps, self.next = 0, 0
        self.rows: list[int] | None = None  # number of the branch of each row
        self.coverage: dict[int, Tensor] = {}  # sum of the weights of each branch, if coverage counts

    def add_step(self, step: SearchStep) -> list[Branch]:
        """Return the branches of one more step: endings first, then those that go on, each best first."""
        self.steps += 1
        owners = [ROOT] * len(step.ending) if self.rows is None else self.rows
        branches = []
        for row, log_prob in enumerate(step.ending.tolist()):
            if log_prob > float("-inf"):
                score = self.score_ending(log_prob, owners[row], step, row)
                branches.append(self.add_branch(owners[row], self.end, log_prob, step, row)._replace(score=score))
        self.rows = []
        going = zip(step.tokens.tolist(), step.parents.tolist(), step.log_probs.tolist(), strict=True)
        for token, row, log_prob in going:
            if log_prob > float("-inf"):
                branches.append(self.add_branch(owners[row], token, log_prob, step, row))
            self.rows.append(branches[-1].number if log_prob > float("-inf") else ROOT)
        return branches

    def add_branch(self, parent: int, token: int, log_prob: float, step: SearchStep, row: int) -> Branch:
        number, weights = self.next, None if step.weights is None else step.weights[row]
        self.next += 1
        if self.scoring.coverage and weights is not None:
            self.coverage[number] = weights + self.coverage.get(parent, 0.0)
        return Branch(number, parent, token, log_prob, weights)

    def score_ending(self, log_prob: float, parent: int, step: SearchStep, row: int) -> float:
        """Return the score of a branch that ends here."""
        covered = None
        if self.scoring.coverage and step.weights is not None:
            total = step.weights[row] + self.coverage.get(parent, 0.0)
            covered = compute_coverage_penalty(total[None, None], torch.ones_like(total, dtype=torch.bool)[None])
        return float(self.scoring.score(torch.tensor([[log_prob]], dtype=torch.float64), self.steps, covered))
