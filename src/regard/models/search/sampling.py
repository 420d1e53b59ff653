"""Greedy search and sampling: one token for each row at each step, the best or one drawn at random."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.compute.kernels import noise
from regard.errors import wrong
from regard.models.interface import Decoder, EncoderOutput
from regard.models.kernels.ranking import rank
from regard.models.search.beam import take_best
from regard.models.search.hypothesis import (
    CompleteHypotheses,
    Hypothesis,
    Search,
    SearchStep,
    SearchSteps,
    SpecialTokens,
    find_kept_rows,
)
from regard.models.selection import select


class NextTokens(NamedTuple):
    """The next token of each row, its log-probability, and that of the end."""

    tokens: Int[Tensor, " row"]
    log_probs: Float[Tensor, " row"]
    ending: Float[Tensor, " row"]


# From the output layer, the vectors, the rows among all, and the step.
Picker = Callable[[nn.Linear, Tensor, Tensor, int], NextTokens]


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """Options of sampling: from the distribution at `temperature`, of the `top` best tokens (0: of all), `count` times.

    The same `seed` draws the same, whatever the rest and the order of the batch, if sentences keep their stream ids.
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


def greedy_search(
    decoder: Decoder[Any],
    encoded: EncoderOutput,
    marks: SpecialTokens,
    limit: int | Int[Tensor, " batch"],
    *,
    attention: bool = False,
) -> list[Hypothesis]:
    """Return the hypothesis of the best token at each step. After `limit` tokens it has to end."""
    pick = build_greedy_picker(marks, encoded.states.device)
    return take_best(SinglePathSearch(decoder, marks, pick, attention=attention).find(encoded, limit))


def build_greedy_picker(marks: SpecialTokens, device: torch.device) -> Picker:
    """Return a picker of the best token that is allowed."""
    excluded = torch.tensor([marks.end, *marks.never], device=device)

    def best(output: nn.Linear, vectors: Tensor, streams: Tensor, step: int) -> NextTokens:
        ranked = rank(vectors, output.weight, output.bias, 1, excluded)
        going, ending = ranked.scores[:, 0], ranked.excluded[:, 0]
        tokens = torch.where(ending >= going, marks.end, ranked.tokens[:, 0])
        return NextTokens(tokens, going.maximum(ending) - ranked.totals, ending - ranked.totals)

    return best


def sample(
    decoder: Decoder[Any],
    encoded: EncoderOutput,
    marks: SpecialTokens,
    limit: int | Int[Tensor, " batch"],
    *,
    options: SamplingOptions | None = None,
    streams: Int[Tensor, " batch"] | None = None,
    attention: bool = False,
) -> list[list[Hypothesis]]:
    """Return `options.count` hypotheses for each sentence, drawn with replacement. After `limit` tokens one has to end.

    `streams` are the ids of the sentences' random streams (None: their indices in the batch).
    """
    options = SamplingOptions() if options is None else options
    streams = torch.arange(len(encoded.lengths), device=encoded.lengths.device) if streams is None else streams
    pick, count = build_sampling_picker(marks, options, streams), options.count
    search = SinglePathSearch(decoder, marks, pick, attention=attention, rows_per_sentence=count)
    hypotheses = take_best(search.find(encoded, limit))
    return [hypotheses[start : start + count] for start in range(0, len(hypotheses), count)]


def build_sampling_picker(marks: SpecialTokens, options: SamplingOptions, streams: Int[Tensor, " batch"]) -> Picker:
    """Return a picker that draws; each of the `options.count` rows of a sentence has its own random stream."""
    ids = (streams[:, None] * options.count + torch.arange(options.count, device=streams.device)).flatten()

    def draw(output: nn.Linear, vectors: Tensor, rows: Tensor, step: int) -> NextTokens:
        return sample_tokens(output(vectors), ids[rows], step, marks, options)

    return draw


def sample_tokens(
    logits: Tensor, streams: Tensor, step: int, marks: SpecialTokens, options: SamplingOptions
) -> NextTokens:
    """Draw one token for each row: the one whose cumulated probability a uniform number falls into."""
    totals = logits.logsumexp(1)
    allowed = logits.index_fill(1, torch.tensor(marks.never, dtype=torch.long, device=logits.device), float("-inf"))
    indices = None
    if options.top and options.top < logits.shape[1]:
        allowed, indices = allowed.topk(options.top, dim=1)
    shares = (allowed.double() / options.temperature).softmax(1).cumsum(1)
    uniform = noise.draw_uniform(options.seed, (), streams, torch.tensor([step], device=streams.device))
    picked = torch.searchsorted(shares, uniform.double() * shares[:, -1:]).clamp_max(shares.shape[1] - 1)
    tokens = picked if indices is None else indices.gather(1, picked)
    return NextTokens(tokens[:, 0], logits.gather(1, tokens)[:, 0] - totals, logits[:, marks.end] - totals)


class LivePaths(NamedTuple):
    """The rows that are kept: their indices among all, last tokens, log-probabilities, and whether they have ended."""

    indices: Int[Tensor, " row"]
    tokens: Int[Tensor, " row"]
    log_probs: Float[Tensor, " row"]
    ended: Bool[Tensor, " row"]


class SinglePathSearch(Search):
    """A search with one hypothesis for each row, from which finished rows are removed."""

    def __init__(
        self,
        decoder: Decoder[Any],
        marks: SpecialTokens,
        pick: Picker,
        *,
        attention: bool,
        rows_per_sentence: int = 1,
    ) -> None:
        super().__init__(decoder, marks, attention=attention, rows_per_sentence=rows_per_sentence)
        self.pick = pick

    def run(self, encoded: EncoderOutput, most: Int[Tensor, " batch"]) -> SearchSteps:
        state = self.decoder.begin(encoded)
        if self.rows_per_sentence > 1:
            index = torch.arange(len(most), device=most.device).repeat_interleave(self.rows_per_sentence)
            state, most = select(state, index), most[index]
        indices = torch.arange(len(most), device=most.device)
        rows = LivePaths(
            indices, torch.full_like(indices, self.marks.begin), torch.zeros(len(most), device=most.device), indices < 0
        )
        found = None
        for steps in range(int(most.max()) + 1 if len(most) else 0):
            taken = self.decoder.advance(rows.tokens, state)
            weights = self.read_weights(taken.weights, len(rows.tokens))
            rows = self.pick_tokens(rows, taken.vector, most, steps)
            found = CompleteHypotheses.create_empty(len(most), 1, taken.vector) if found is None else found
            rows, ending = record_endings(found, rows, self.marks.end, steps)
            kept = find_kept_rows(rows.ended)
            if len(kept) < len(rows.ended):
                rows = LivePaths(*(part[kept] for part in rows))
            state = taken.state if len(kept) in (0, len(taken.vector)) else select(taken.state, kept)
            yield SearchStep(weights, rows.tokens, kept, mask_ended(rows), ending)
            if not len(kept):
                break
        return CompleteHypotheses.create_empty(0, 1, torch.zeros(())) if found is None else found

    def pick_tokens(self, rows: LivePaths, vectors: Float[Tensor, "row width"], most: Tensor, steps: int) -> LivePaths:
        """Return the rows with their next tokens: the end, if no other is allowed."""
        tokens, more, ending = self.pick(self.decoder.output, vectors, rows.indices, steps)
        forced = most[rows.indices] <= steps
        if bool(forced.any()):
            tokens = torch.where(forced, self.marks.end, tokens)
            more = torch.where(forced, ending, more)
        return rows._replace(tokens=tokens, log_probs=rows.log_probs + more)


def mask_ended(rows: LivePaths) -> Float[Tensor, " row"]:
    """Return the log-probabilities of the rows, −inf for those that have ended."""
    return torch.where(rows.ended, float("-inf"), rows.log_probs)


def record_endings(
    found: CompleteHypotheses, rows: LivePaths, end: int, steps: int
) -> tuple[LivePaths, Float[Tensor, " row"]]:
    """Record the rows that end at this step; return also their log-probabilities, −inf for the others."""
    ending = (rows.tokens == end) & ~rows.ended
    here = ending.nonzero()[:, 0]
    own = rows.indices[here]
    found.scores[own, 0] = found.log_probs[own, 0] = rows.log_probs[here]
    found.ends[own, 0], found.rows[own, 0] = steps, here
    return rows._replace(ended=rows.ended | ending), torch.where(ending, rows.log_probs, float("-inf"))
