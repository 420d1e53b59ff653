"""A search while it goes on: the tree of its hypotheses, a step at a time."""

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
    """A hypothesis that has said one token more.

    It goes on from the branch with the number `parent`. `log_prob` is that of all its tokens; `weights` is where it
    looked when it said this one; a `score` means that this token is the end, and is what complete ones are ranked by.
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
    plan: BeamOptions | SamplingOptions | None = None,
) -> Iterator[list[Branch]]:
    """The new branches of each step of one sentence's search: greedy where no `plan` is given.

    The same search as `greedy`, `beam` and `sample`, which return the branches that end. Who stops asking stops it.
    """
    if len(encoded.lengths) != 1:
        fix = "watch one after another"
        raise wrong("encoded", f"{len(encoded.lengths)} sentences", "one to be watched", fix)
    walk = start_search(decoder, encoded, marks, expand_limit(limit, encoded.lengths), plan)
    growing = SearchTree(marks.end, plan.scoring if isinstance(plan, BeamOptions) else HypothesisScorer())
    while True:
        with torch.inference_mode():  # not around the yield: who watches has a mode of his own
            moment = next(walk, None)
            if moment is None:
                return
            branches = growing.add_step(moment)
        yield branches


def start_search(
    decoder: Decoder[Any],
    encoded: EncoderOutput,
    marks: SpecialTokens,
    most: Int[Tensor, " batch"],
    plan: BeamOptions | SamplingOptions | None,
) -> SearchSteps:
    """The search that a plan means."""
    if isinstance(plan, BeamOptions):
        return BeamSearch(decoder, marks, plan, attention=True).run(encoded, most)
    if plan is None:
        return SinglePathSearch(decoder, marks, build_greedy_picker(marks, most.device), attention=True).run(
            encoded, most
        )
    draw = build_sampling_picker(marks, plan, torch.zeros_like(most))
    return SinglePathSearch(decoder, marks, draw, attention=True, rows_per_sentence=plan.count).run(encoded, most)


class SearchTree:
    """The rows of a search as branches with numbers."""

    def __init__(self, end: int, scoring: HypothesisScorer) -> None:
        self.end, self.scoring = end, scoring
        self.steps, self.next = 0, 0
        self.rows: list[int] | None = None  # the branch of each row
        self.seen: dict[int, Tensor] = {}  # what each branch has looked at in all, where coverage counts

    def add_step(self, moment: SearchStep) -> list[Branch]:
        """The branches of one more step: endings first, then those that go on, each the best first."""
        self.steps += 1
        owners = [ROOT] * len(moment.ending) if self.rows is None else self.rows
        branches = []
        for row, log_prob in enumerate(moment.ending.tolist()):
            if log_prob > float("-inf"):
                score = self.score_ending(log_prob, owners[row], moment, row)
                branches.append(self.add_branch(owners[row], self.end, log_prob, moment, row)._replace(score=score))
        self.rows = []
        going = zip(moment.tokens.tolist(), moment.parents.tolist(), moment.log_probs.tolist(), strict=True)
        for token, row, log_prob in going:
            if log_prob > float("-inf"):
                branches.append(self.add_branch(owners[row], token, log_prob, moment, row))
            self.rows.append(branches[-1].number if log_prob > float("-inf") else ROOT)
        return branches

    def add_branch(self, parent: int, token: int, log_prob: float, moment: SearchStep, row: int) -> Branch:
        number, looked = self.next, None if moment.weights is None else moment.weights[row]
        self.next += 1
        if self.scoring.coverage and looked is not None:
            self.seen[number] = looked + self.seen.get(parent, 0.0)
        return Branch(number, parent, token, log_prob, looked)

    def score_ending(self, log_prob: float, parent: int, moment: SearchStep, row: int) -> float:
        """What a branch that ends here is ranked by."""
        covered = None
        if self.scoring.coverage and moment.weights is not None:
            seen = moment.weights[row] + self.seen.get(parent, 0.0)
            covered = compute_coverage_penalty(seen[None, None], torch.ones_like(seen, dtype=torch.bool)[None])
        return float(self.scoring.score(torch.tensor([[log_prob]], dtype=torch.float64), self.steps, covered))
