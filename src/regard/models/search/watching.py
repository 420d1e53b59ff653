"""A search while it goes on: the tree of its hypotheses, a step at a time."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from regard.algebra.shapes import Float, Int, Tensor
from regard.errors import wrong
from regard.models.interface import Decoder, Encoded
from regard.models.search.beams import Beam, Hunt
from regard.models.search.hypothesis import Marks, Moment, Walk, limits
from regard.models.search.scoring import Scoring, covering
from regard.models.search.single import Path, Sampling, best_of, draw_of

ROOT = -1  # what the first branches grow from


class Branch(NamedTuple):
    """A hypothesis that has said one token more.

    It goes on from the branch with the number `parent`. `log_prob` is that of all its tokens; `looked` is where it
    looked when it said this one; a `score` means that this token is the end, and is what complete ones are ranked by.
    """

    number: int
    parent: int
    token: int
    log_prob: float
    looked: Float[Tensor, " source"] | None
    score: float | None = None


def watch(
    decoder: Decoder[Any],
    encoded: Encoded,
    marks: Marks,
    limit: int | Int[Tensor, " batch"],
    *,
    plan: Beam | Sampling | None = None,
) -> Iterator[list[Branch]]:
    """The new branches of each step of one sentence's search: greedy where no `plan` is given.

    The same search as `greedy`, `beam` and `sample`, which return the branches that end. Who stops asking stops it.
    """
    if len(encoded.lengths) != 1:
        fix = "watch one after another"
        raise wrong("encoded", f"{len(encoded.lengths)} sentences", "one to be watched", fix)
    walk = walked(decoder, encoded, marks, limits(limit, encoded.lengths), plan)
    growing = Growing(marks.end, plan.scoring if isinstance(plan, Beam) else Scoring())
    while True:
        with torch.inference_mode():  # not around the yield: who watches has a mode of his own
            moment = next(walk, None)
            if moment is None:
                return
            branches = growing.after(moment)
        yield branches


def walked(
    decoder: Decoder[Any], encoded: Encoded, marks: Marks, most: Int[Tensor, " batch"], plan: Beam | Sampling | None
) -> Walk:
    """The search that a plan means."""
    if isinstance(plan, Beam):
        return Hunt(decoder, marks, plan, attention=True).walk(encoded, most)
    if plan is None:
        return Path(decoder, marks, best_of(marks, most.device), attention=True).walk(encoded, most)
    draw = draw_of(marks, plan, torch.zeros_like(most))
    return Path(decoder, marks, draw, attention=True, times=plan.count).walk(encoded, most)


class Growing:
    """The rows of a search as branches with numbers."""

    def __init__(self, end: int, scoring: Scoring) -> None:
        self.end, self.scoring = end, scoring
        self.steps, self.next = 0, 0
        self.rows: list[int] | None = None  # the branch of each row
        self.seen: dict[int, Tensor] = {}  # what each branch has looked at in all, where coverage counts

    def after(self, moment: Moment) -> list[Branch]:
        """The branches of one more step: endings first, then those that go on, each the best first."""
        self.steps += 1
        owners = [ROOT] * len(moment.ending) if self.rows is None else self.rows
        branches = []
        for row, log_prob in enumerate(moment.ending.tolist()):
            if log_prob > float("-inf"):
                score = self.scored(log_prob, owners[row], moment, row)
                branches.append(self.branch(owners[row], self.end, log_prob, moment, row)._replace(score=score))
        self.rows = []
        going = zip(moment.tokens.tolist(), moment.parents.tolist(), moment.log_probs.tolist(), strict=True)
        for token, row, log_prob in going:
            if log_prob > float("-inf"):
                branches.append(self.branch(owners[row], token, log_prob, moment, row))
            self.rows.append(branches[-1].number if log_prob > float("-inf") else ROOT)
        return branches

    def branch(self, parent: int, token: int, log_prob: float, moment: Moment, row: int) -> Branch:
        number, looked = self.next, None if moment.looked is None else moment.looked[row]
        self.next += 1
        if self.scoring.coverage and looked is not None:
            self.seen[number] = looked + self.seen.get(parent, 0.0)
        return Branch(number, parent, token, log_prob, looked)

    def scored(self, log_prob: float, parent: int, moment: Moment, row: int) -> float:
        """What a branch that ends here is ranked by."""
        covered = None
        if self.scoring.coverage and moment.looked is not None:
            seen = moment.looked[row] + self.seen.get(parent, 0.0)
            covered = covering(seen[None, None], torch.ones_like(seen, dtype=torch.bool)[None])
        return float(self.scoring.score(torch.tensor([[log_prob]], dtype=torch.float64), self.steps, covered))
