"""Beam search over any decoder whose states can be selected from."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import torch

from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.errors import InputError, wrong
from regard.models.interface import Decoder, EncoderOutput
from regard.models.kernels.ranking import rank
from regard.models.search.hypothesis import (
    CompleteHypotheses,
    Hypothesis,
    Search,
    SearchStep,
    SearchSteps,
    SpecialTokens,
    find_kept_rows,
)
from regard.models.search.scorer import HypothesisScorer, compute_coverage_penalty
from regard.models.selection import select


@dataclass(frozen=True, slots=True)
class BeamOptions:
    """Options of beam search.

    At each step the `width` best continuations of a sentence are kept, and an ending that is among the `width` best
    continuations is a complete hypothesis, of which the `best` are returned. `stop="exact"` ends a sentence when no
    live hypothesis can become better than the worst of those, so that stopping changes nothing; `stop="full"` ends it
    when `width` hypotheses are complete, as is usual, and is faster with a length penalty.
    """

    width: int = 5
    best: int = 1
    stop: Literal["exact", "full"] = "exact"
    scoring: HypothesisScorer = field(default_factory=HypothesisScorer)

    def __post_init__(self) -> None:
        if self.width < 1:
            raise wrong("width", self.width, "at least 1", "use 1 for greedy search, 5 for translation")
        if not 1 <= self.best <= self.width:
            raise wrong("best", self.best, f"1 … width={self.width}", "widen the beam, or ask for fewer")


def beam_search(
    decoder: Decoder[Any],
    encoded: EncoderOutput,
    marks: SpecialTokens,
    limit: int | Int[Tensor, " batch"],
    *,
    options: BeamOptions | None = None,
    attention: bool = False,
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence, best first. After `limit` tokens a hypothesis has to end.

    `attention`: each hypothesis has its weights. The decoder is used as it is: put it in evaluation mode first.
    """
    options = BeamOptions() if options is None else options
    if not len(encoded.lengths):
        return []
    search = BeamSearch(decoder, marks, options, attention=attention or options.scoring.coverage > 0)
    hypotheses = search.find(encoded, limit)
    if attention:
        return hypotheses
    return [[replace(one, weights=None) for one in several] for several in hypotheses]


def take_best(several: list[list[Hypothesis]]) -> list[Hypothesis]:
    """Return the best hypothesis of each sentence; raise if one has none because its scores are NaN."""
    if not all(several):
        raise no_hypothesis()
    return [hypotheses[0] for hypotheses in several]


def no_hypothesis() -> InputError:
    """Return the error for a sentence without a hypothesis: its scores are NaN."""
    fix = "check the input and the weights, or train it again with a lower rate"
    return wrong("model", "scores that are not finite", "finite numbers", fix)


class LiveBeams(NamedTuple):
    """The sentences that are not finished, with `width` hypotheses each, best first; −inf: no hypothesis."""

    owners: Int[Tensor, " sentence"]
    limits: Int[Tensor, " sentence"]
    log_probs: Float[Tensor, "sentence width"]
    tokens: Int[Tensor, "sentence width"]
    covered: Float[Tensor, "sentence width source"] | None
    real: Bool[Tensor, "sentence source"]
    complete: Int[Tensor, " sentence"]
    state: Any


class Continuations(NamedTuple):
    """The best continuations of each sentence, and which hypotheses end here with which probability (−inf: not)."""

    log_probs: Float[Tensor, "sentence width"]
    tokens: Int[Tensor, "sentence width"]
    slots: Int[Tensor, "sentence width"]
    ending: Float[Tensor, "sentence width"]


class BeamSearch(Search):
    """One beam search: a decoder, special tokens and options."""

    def __init__(self, decoder: Decoder[Any], marks: SpecialTokens, options: BeamOptions, *, attention: bool) -> None:
        super().__init__(decoder, marks, attention=attention)
        self.options = options

    def run(self, encoded: EncoderOutput, most: Int[Tensor, " batch"]) -> SearchSteps:
        live = self.start(encoded, most)
        found = CompleteHypotheses.create_empty(len(most), self.options.best, encoded.states)
        for steps in range(int(most.max()) + 1):
            taken = self.decoder.advance(live.tokens.flatten(), live.state)
            weights = self.read_weights(taken.weights, live.tokens.numel())
            live = self.add_coverage(live, weights)
            choice = self.choose(live, taken.vector, steps)
            found, complete = self.collect_endings(found, live, choice, steps)
            live = live._replace(complete=complete)
            finished = self.find_finished(found, live, choice)
            # A finished sentence does not go on, even while its rows are kept.
            choice = choice._replace(log_probs=choice.log_probs.masked_fill(finished[:, None], float("-inf")))
            kept = find_kept_rows(finished)
            live, parents = self.step(live, choice, taken.state, kept)
            going = (live.tokens.flatten(), parents.flatten(), live.log_probs.flatten())
            yield SearchStep(weights, *going, choice.ending.flatten())
            if not len(live.owners):
                break
        return found

    def start(self, encoded: EncoderOutput, most: Tensor) -> LiveBeams:
        """Return one empty hypothesis for each sentence; the other slots are unused."""
        sentences, width = len(most), self.options.width
        device = most.device
        owners = torch.arange(sentences, device=device)
        log_probs = encoded.states.new_full((sentences, width), float("-inf"))
        log_probs[:, 0] = 0.0
        tokens = torch.full((sentences, width), self.marks.begin, device=device)
        real = torch.arange(encoded.states.shape[1], device=device) < encoded.lengths[:, None]
        state = select(self.decoder.begin(encoded), owners.repeat_interleave(width))
        return LiveBeams(owners, most, log_probs, tokens, None, real, torch.zeros_like(owners), state)

    def add_coverage(self, live: LiveBeams, weights: Tensor | None) -> LiveBeams:
        """Add the weights of a step to the coverage, if it counts."""
        if not self.options.scoring.coverage or weights is None:
            return live
        now = weights.view(*live.tokens.shape, -1)
        return live._replace(covered=now if live.covered is None else live.covered + now)

    def choose(self, live: LiveBeams, vectors: Float[Tensor, "row width"], steps: int) -> Continuations:
        """Return the best continuations, and the endings that are among the best of both."""
        width, output = self.options.width, self.decoder.output
        excluded = torch.tensor([self.marks.end, *self.marks.never], device=vectors.device)
        scores, tokens, totals, outside = rank(vectors, output.weight, output.bias, width, excluded)
        base = live.log_probs - totals.view_as(live.log_probs)
        ends = base + outside[:, 0].view_as(base)
        going = base[..., None] + scores.view(*base.shape, -1)
        going = torch.where((live.limits > steps)[:, None, None], going, float("-inf"))
        log_probs, flat = going.flatten(1).topk(width, dim=1)
        chosen = tokens.view(len(base), -1).gather(1, flat)
        least = torch.cat([log_probs, ends], dim=1).topk(width, dim=1).values[:, -1:]
        ending = torch.where((ends >= least) & (ends > float("-inf")), ends, float("-inf"))
        return Continuations(log_probs, chosen, flat.div(scores.shape[1], rounding_mode="floor"), ending)

    def collect_endings(
        self, found: CompleteHypotheses, live: LiveBeams, choice: Continuations, steps: int
    ) -> tuple[CompleteHypotheses, Tensor]:
        """Return the hypotheses with those that end at this step, and how many each sentence has completed."""
        ended = choice.ending > float("-inf")
        if not bool(ended.any()):
            return found, live.complete
        covered = None if live.covered is None else compute_coverage_penalty(live.covered, live.real)
        scores = self.options.scoring.score(choice.ending, steps + 1, covered)
        rows = torch.arange(ended.numel(), device=ended.device).view_as(ended)
        new = CompleteHypotheses(scores, choice.ending, torch.full_like(rows, steps), rows)
        best = CompleteHypotheses(*(part[live.owners] for part in found)).merge_best(new)
        merged = (old.index_copy(0, live.owners, part) for old, part in zip(found, best, strict=True))
        return CompleteHypotheses(*merged), live.complete + ended.sum(1)

    def find_finished(
        self, found: CompleteHypotheses, live: LiveBeams, choice: Continuations
    ) -> Bool[Tensor, " sentence"]:
        """Return which sentences are finished: the stopping rule."""
        best = choice.log_probs[:, 0]
        if self.options.stop == "full":
            finished = live.complete >= self.options.width
        else:
            finished = found.scores[live.owners, -1] >= self.options.scoring.bound_score(best, live.limits)
        return finished | (best == float("-inf"))

    def step(self, live: LiveBeams, choice: Continuations, state: Any, kept: Tensor) -> tuple[LiveBeams, Tensor]:
        """Return the chosen hypotheses of the kept sentences, and the rows that they came from."""
        slots = choice.slots[kept]
        parents = kept[:, None] * self.options.width + slots
        covered = None if live.covered is None else live.covered.flatten(0, 1)[parents]
        same = len(kept) == len(live.owners)
        later = LiveBeams(
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
