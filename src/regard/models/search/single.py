"""One path for each row: the best token at each step, or one drawn at random."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from regard.errors import wrong
from regard.models.interface import Decoder, Encoded
from regard.models.search.beams import SPARE
from regard.models.search.beams import best_of as best_hypotheses
from regard.models.search.hypothesis import Found, Hypothesis, Marks, Moment, Walk, followed, limits, looked_at
from regard.models.selecting import select
from regard.numerics import noise
from regard.numerics.ranking import rank
from regard.shapes import Bool, Float, Int, Tensor


class Pick(NamedTuple):
    """What each row says next, how probable that was, and how probable the end was."""

    tokens: Int[Tensor, " row"]
    log_probs: Float[Tensor, " row"]
    ending: Float[Tensor, " row"]


Picker = Callable[[nn.Linear, Tensor, Tensor, int], Pick]  # from output layer, vectors, the rows' names and the step


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to draw: from the distribution at `temperature`, of the `top` best tokens (0: of all), `count` times.

    The same `seed` draws the same, whatever else is in the batch and in whatever order, if sentences keep their names.
    """

    temperature: float = 1.0
    top: int = 0
    count: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise wrong("temperature", self.temperature, "a number above 0", "use greedy search for 0")
        if self.top < 0 or self.count < 1:
            name, least = ("top", 0) if self.top < 0 else ("count", 1)
            raise wrong(name, getattr(self, name), f"at least {least}", f"give {name} a value of {least} or more")


def greedy(
    decoder: Decoder[Any],
    encoded: Encoded,
    marks: Marks,
    limit: int | Int[Tensor, " batch"],
    *,
    attention: bool = False,
) -> list[Hypothesis]:
    """The best token at each step, until that is the end. After `limit` tokens it has to be."""
    with torch.inference_mode():
        path = Path(decoder, marks, best_of(marks, encoded.states.device), attention)
        found, trace = followed(path.walk(encoded, limits(limit, encoded.lengths)))
    return best_hypotheses(found.hypotheses(trace, encoded.lengths))


def best_of(marks: Marks, device: torch.device) -> Picker:
    """Picks the best token that may be said."""
    excluded = torch.tensor([marks.end, *marks.never], device=device)

    def best(output: nn.Linear, vectors: Tensor, names: Tensor, step: int) -> Pick:
        ranked = rank(vectors, output.weight, output.bias, 1, excluded)
        going, ending = ranked.scores[:, 0], ranked.excluded[:, 0]
        tokens = torch.where(ending >= going, marks.end, ranked.tokens[:, 0])
        return Pick(tokens, going.maximum(ending) - ranked.totals, ending - ranked.totals)

    return best


def sample(
    decoder: Decoder[Any],
    encoded: Encoded,
    marks: Marks,
    limit: int | Int[Tensor, " batch"],
    *,
    plan: Sampling | None = None,
    names: Int[Tensor, " batch"] | None = None,
    attention: bool = False,
) -> list[list[Hypothesis]]:
    """`plan.count` hypotheses for each sentence, drawn with replacement. After `limit` tokens one has to end.

    `names` tell the random numbers of sentences apart (their places in the batch, where none are given).
    """
    plan = Sampling() if plan is None else plan
    names = torch.arange(len(encoded.lengths), device=encoded.lengths.device) if names is None else names
    with torch.inference_mode():
        path = Path(decoder, marks, draw_of(marks, plan, names), attention, plan.count)
        found, trace = followed(path.walk(encoded, limits(limit, encoded.lengths)))
    lengths, count = encoded.lengths.repeat_interleave(plan.count), plan.count
    hypotheses = best_hypotheses(found.hypotheses(trace, lengths))
    return [hypotheses[start : start + count] for start in range(0, len(hypotheses), count)]


def draw_of(marks: Marks, plan: Sampling, names: Int[Tensor, " batch"]) -> Picker:
    """Picks at random, for each of the `plan.count` rows of a sentence by numbers of its own."""
    named = (names[:, None] * plan.count + torch.arange(plan.count, device=names.device)).flatten()

    def draw(output: nn.Linear, vectors: Tensor, rows: Tensor, step: int) -> Pick:
        return drawn(output(vectors), named[rows], step, marks, plan)

    return draw


def drawn(logits: Tensor, names: Tensor, step: int, marks: Marks, plan: Sampling) -> Pick:
    """One token for each row, by where a uniform number falls among the cumulated probabilities."""
    totals = logits.logsumexp(1)
    allowed = logits.index_fill(1, torch.tensor(marks.never, dtype=torch.long, device=logits.device), float("-inf"))
    places = None
    if plan.top and plan.top < logits.shape[1]:
        allowed, places = allowed.topk(plan.top, dim=1)
    shares = (allowed.double() / plan.temperature).softmax(1).cumsum(1)
    uniform = noise.uniform(plan.seed, (), names, torch.tensor([step], device=names.device))
    picked = torch.searchsorted(shares, uniform.double() * shares[:, -1:]).clamp_max(shares.shape[1] - 1)
    tokens = picked if places is None else places.gather(1, picked)
    return Pick(tokens[:, 0], logits.gather(1, tokens)[:, 0] - totals, logits[:, marks.end] - totals)


class Rows(NamedTuple):
    """The rows that are still there: their places among all, what they said last, how probable they are, whether they
    have ended."""

    places: Int[Tensor, " row"]
    tokens: Int[Tensor, " row"]
    log_probs: Float[Tensor, " row"]
    ended: Bool[Tensor, " row"]


class Path(NamedTuple):
    """A search that goes on with one token for each row."""

    decoder: Decoder[Any]
    marks: Marks
    pick: Picker
    attention: bool
    times: int = 1  # rows of each sentence

    def walk(self, encoded: Encoded, most: Int[Tensor, " batch"]) -> Walk:
        """From the beginning to the end of each row; finished rows are removed."""
        state = self.decoder.begin(encoded)
        if self.times > 1:
            index = torch.arange(len(most), device=most.device).repeat_interleave(self.times)
            state, most = select(state, index), most[index]
        places = torch.arange(len(most), device=most.device)
        rows = Rows(
            places, torch.full_like(places, self.marks.begin), torch.zeros(len(most), device=most.device), places < 0
        )
        found = None
        for steps in range(int(most.max()) + 1 if len(most) else 0):
            taken = self.decoder.advance(rows.tokens, state)
            looked = looked_at(taken.weights, len(rows.tokens), wanted=self.attention)
            rows = self.said(rows, taken.vector, most, steps)
            found = Found.none(len(most), 1, taken.vector) if found is None else found
            rows, ending = record(found, rows, self.marks.end, steps)
            kept = standing(rows.ended)
            if len(kept) < len(rows.ended):
                rows = Rows(*(part[kept] for part in rows))
            state = taken.state if len(kept) in (0, len(taken.vector)) else select(taken.state, kept)
            yield Moment(looked, rows.tokens, kept, live(rows), ending)
            if not len(kept):
                break
        return Found.none(0, 1, torch.zeros(())) if found is None else found

    def said(self, rows: Rows, vectors: Float[Tensor, "row width"], most: Tensor, steps: int) -> Rows:
        """With the next token of each row: the end, where there is room for no other."""
        tokens, more, ending = self.pick(self.decoder.output, vectors, rows.places, steps)
        forced = most[rows.places] <= steps
        if bool(forced.any()):
            tokens = torch.where(forced, self.marks.end, tokens)
            more = torch.where(forced, ending, more)
        return rows._replace(tokens=tokens, log_probs=rows.log_probs + more)


def live(rows: Rows) -> Float[Tensor, " row"]:
    """How probable the rows are that have not ended; −inf for those that have and still stand."""
    return torch.where(rows.ended, float("-inf"), rows.log_probs)


def record(found: Found, rows: Rows, end: int, steps: int) -> tuple[Rows, Float[Tensor, " row"]]:
    """Writes down the rows that end at this step; and how probable each is, −inf for the others."""
    ending = (rows.tokens == end) & ~rows.ended
    here = ending.nonzero()[:, 0]
    own = rows.places[here]
    found.scores[own, 0] = found.log_probs[own, 0] = rows.log_probs[here]
    found.ends[own, 0], found.rows[own, 0] = steps, here
    return rows._replace(ended=rows.ended | ending), torch.where(ending, rows.log_probs, float("-inf"))


def standing(ended: Bool[Tensor, " row"]) -> Int[Tensor, " kept"]:
    """The rows to go on with: those that have not ended, and ended ones until there are many."""
    if int(ended.sum()) * SPARE < len(ended):
        return torch.arange(len(ended), device=ended.device)
    return (~ended).nonzero()[:, 0]
