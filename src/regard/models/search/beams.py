"""Beam search. It knows of a decoder that it begins, advances, and that its states can be selected from."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import torch

from regard.errors import InputError, wrong
from regard.models.interface import Decoder, Encoded
from regard.models.search.hypothesis import Found, Hypothesis, Marks, Moment, Walk, followed, limits, looked_at
from regard.models.search.scoring import Scoring, covering
from regard.models.selecting import select
from regard.numerics.ranking import rank
from regard.shapes import Bool, Float, Int, Tensor

SPARE = 8  # rows are removed when one in so many is finished: removing costs a copy


@dataclass(frozen=True, slots=True)
class Beam:
    """How to search.

    At each step the `width` best continuations of a sentence are kept, and an ending that is among the `width` best
    continuations is a complete hypothesis, of which the `best` are returned. `stop="exact"` ends a sentence when no
    live hypothesis can become better than the worst of those, whatever may follow, so that stopping changes nothing;
    `stop="full"` ends it when `width` hypotheses are complete, as is usual, and is faster with a length penalty.
    """

    width: int = 5
    best: int = 1
    stop: Literal["exact", "full"] = "exact"
    scoring: Scoring = field(default_factory=Scoring)

    def __post_init__(self) -> None:
        if self.width < 1:
            raise wrong("width", self.width, "at least 1", "use 1 for greedy search, 5 for translation")
        if not 1 <= self.best <= self.width:
            raise wrong("best", self.best, f"1 … width={self.width}", "widen the beam, or ask for fewer")


def beam(
    decoder: Decoder[Any],
    encoded: Encoded,
    marks: Marks,
    limit: int | Int[Tensor, " batch"],
    *,
    plan: Beam | None = None,
    attention: bool = False,
) -> list[list[Hypothesis]]:
    """The best hypotheses of each sentence, best first. After `limit` tokens a hypothesis has to end.

    `attention`: each hypothesis carries where it looked. The decoder is used as it is: put it in evaluation first.
    """
    plan = Beam() if plan is None else plan
    if not len(encoded.lengths):
        return []
    with torch.inference_mode():
        hunt = Hunt(decoder, marks, plan, attention or plan.scoring.coverage > 0)
        found, trace = followed(hunt.walk(encoded, limits(limit, encoded.lengths)))
    hypotheses = found.hypotheses(trace, encoded.lengths)
    if attention:
        return hypotheses
    return [[replace(one, weights=None) for one in own] for own in hypotheses]


def best_of(several: list[list[Hypothesis]]) -> list[Hypothesis]:
    """Return the best hypothesis of each sentence; raise where a sentence has none, because no score was a number."""
    if not all(several):
        raise no_hypothesis()
    return [own[0] for own in several]


def no_hypothesis() -> InputError:
    """The error for a sentence without a hypothesis: no score was a number."""
    fix = "check the input and the weights, or train it again with a lower rate"
    return wrong("model", "scores that are not finite", "finite numbers", fix)


class Live(NamedTuple):
    """The sentences that are not finished, with `width` hypotheses each, best first; −inf: no hypothesis."""

    owners: Int[Tensor, " sentence"]
    limits: Int[Tensor, " sentence"]
    log_probs: Float[Tensor, "sentence width"]
    tokens: Int[Tensor, "sentence width"]
    covered: Float[Tensor, "sentence width source"] | None
    real: Bool[Tensor, "sentence source"]
    complete: Int[Tensor, " sentence"]
    state: Any


class Choice(NamedTuple):
    """The best continuations of each sentence, and which hypotheses end here with which probability (−inf: not)."""

    log_probs: Float[Tensor, "sentence width"]
    tokens: Int[Tensor, "sentence width"]
    slots: Int[Tensor, "sentence width"]
    ending: Float[Tensor, "sentence width"]


class Hunt:
    """One search: what stays the same over its steps."""

    def __init__(self, decoder: Decoder[Any], marks: Marks, plan: Beam, attention: bool) -> None:
        self.decoder, self.marks, self.plan, self.attention = decoder, marks, plan, attention

    def walk(self, encoded: Encoded, most: Int[Tensor, " batch"]) -> Walk:
        """Step by step."""
        live = self.start(encoded, most)
        found = Found.none(len(most), self.plan.best, encoded.states)
        for steps in range(int(most.max()) + 1):
            taken = self.decoder.advance(live.tokens.flatten(), live.state)
            looked = looked_at(taken.weights, live.tokens.numel(), wanted=self.attention)
            live = self.watched(live, looked)
            choice = self.choose(live, taken.vector, steps)
            found, complete = self.gather(found, live, choice, steps)
            live = live._replace(complete=complete)
            kept = self.kept(found, live, choice)
            live, parents = self.on(live, choice, taken.state, kept)
            going = (live.tokens.flatten(), parents.flatten(), live.log_probs.flatten())
            yield Moment(looked, *going, choice.ending.flatten())
            if not len(live.owners):
                break
        return found

    def start(self, encoded: Encoded, most: Tensor) -> Live:
        """One hypothesis for each sentence, that has said nothing; the other places are empty."""
        sentences, width = len(most), self.plan.width
        device = most.device
        owners = torch.arange(sentences, device=device)
        log_probs = encoded.states.new_full((sentences, width), float("-inf"))
        log_probs[:, 0] = 0.0
        tokens = torch.full((sentences, width), self.marks.begin, device=device)
        real = torch.arange(encoded.states.shape[1], device=device) < encoded.lengths[:, None]
        state = select(self.decoder.begin(encoded), owners.repeat_interleave(width))
        return Live(owners, most, log_probs, tokens, None, real, torch.zeros_like(owners), state)

    def watched(self, live: Live, looked: Tensor | None) -> Live:
        """With what was looked at so far, where that counts."""
        if not self.plan.scoring.coverage or looked is None:
            return live
        now = looked.view(*live.tokens.shape, -1)
        return live._replace(covered=now if live.covered is None else live.covered + now)

    def choose(self, live: Live, vectors: Float[Tensor, "row width"], steps: int) -> Choice:
        """The best continuations, and the endings that are among the best of both."""
        width, output = self.plan.width, self.decoder.output
        excluded = torch.tensor([self.marks.end, *self.marks.never], device=vectors.device)
        scores, tokens, totals, outside = rank(vectors, output.weight, output.bias, width, excluded)
        base = live.log_probs - totals.view_as(live.log_probs)
        ends = base + outside[:, 0].view_as(base)
        going = base[..., None] + scores.view(*base.shape, -1)
        going = torch.where((live.limits > steps)[:, None, None], going, float("-inf"))
        log_probs, flat = going.flatten(1).topk(width, dim=1)
        said = tokens.view(len(base), -1).gather(1, flat)
        least = torch.cat([log_probs, ends], dim=1).topk(width, dim=1).values[:, -1:]
        ending = torch.where((ends >= least) & (ends > float("-inf")), ends, float("-inf"))
        return Choice(log_probs, said, flat.div(scores.shape[1], rounding_mode="floor"), ending)

    def gather(self, found: Found, live: Live, choice: Choice, steps: int) -> tuple[Found, Tensor]:
        """With the hypotheses that end at this step; and how many each sentence has had."""
        ended = choice.ending > float("-inf")
        if not bool(ended.any()):
            return found, live.complete
        covered = None if live.covered is None else covering(live.covered, live.real)
        scores = self.plan.scoring.score(choice.ending, steps + 1, covered)
        rows = torch.arange(ended.numel(), device=ended.device).view_as(ended)
        new = Found(scores, choice.ending, torch.full_like(rows, steps), rows)
        best = Found(*(part[live.owners] for part in found)).better(new)
        merged = Found(*(old.index_copy(0, live.owners, part) for old, part in zip(found, best, strict=True)))
        return merged, live.complete + ended.sum(1)

    def kept(self, found: Found, live: Live, choice: Choice) -> Int[Tensor, " kept"]:
        """The sentences to go on with: those that are not finished, and finished ones until there are many."""
        best = choice.log_probs[:, 0]
        if self.plan.stop == "full":
            done = live.complete >= self.plan.width
        else:
            done = found.scores[live.owners, -1] >= self.plan.scoring.bound(best, live.limits)
        done |= best == float("-inf")
        if not bool(done.any()):
            return torch.arange(len(done), device=done.device)
        choice.log_probs[done] = float("-inf")  # what is finished says no more, wherever it still stands
        if int(done.sum()) * SPARE < len(done):
            return torch.arange(len(done), device=done.device)
        return (~done).nonzero()[:, 0]

    def on(self, live: Live, choice: Choice, state: Any, kept: Tensor) -> tuple[Live, Tensor]:
        """The chosen hypotheses of the sentences that are kept, and the rows that they came from."""
        slots = choice.slots[kept]
        parents = kept[:, None] * self.plan.width + slots
        covered = None if live.covered is None else live.covered.flatten(0, 1)[parents]
        same = len(kept) == len(live.owners)
        later = Live(
            live.owners if same else live.owners[kept],
            live.limits if same else live.limits[kept],
            choice.log_probs[kept],
            choice.tokens[kept],
            covered,
            live.real if same else live.real[kept],
            live.complete[kept],
            select(state, parents.flatten()) if len(kept) else state,
        )
        return later, parents
