"""How a recurrent decoder reads the source: everywhere, along the diagonal, near a predicted place, or not at all.

A reader holds parameters only. What it remembers of a source, and what it has looked at, is passed in and out.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.definition import score_pairs
from regard.algebra.masks import CenteredWindow
from regard.algebra.normalizers import ChunkwiseMonotonic, SequentialNormalizer
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.attend import AttentionResult
from regard.compute.watchers import notify_watchers
from regard.errors import wrong, wrong_kind
from regard.layers.attention import Attention
from regard.layers.local import LocalAttention
from regard.layers.location import Coverage, LocationFeatures
from regard.layers.memory import Memory
from regard.models.decoders.attention_checks import build_parts, check_single_head, check_source_attention, drop_weights
from regard.models.interface import Alignment, AttentionSample, EncoderOutput, MeanAlignment, StoredAlignment
from regard.models.selection import SharedState


class DecoderAttentionState(NamedTuple):
    """A source as a reader knows it: its memory, the steps so far, and a trail of what was looked at."""

    source: SharedState[Memory]
    steps: int = 0
    history: Float[Tensor, "row source"] | None = None

    def take_first(self, rows: int) -> "DecoderAttentionState":
        """What the first sentences know, where each has one row; nothing is copied."""
        if rows == self.source.sentences:
            return self
        trail = None if self.history is None else self.history[:rows]
        return DecoderAttentionState(SharedState(self.source.part.take_first(rows), rows), self.steps, trail)


class AttentionStep(NamedTuple):
    """What one look gave: a context for each row, what is known now, where it looked, and how that was drawn."""

    context: Float[Tensor, "row width"]
    state: DecoderAttentionState
    weights: Alignment | None
    sample: AttentionSample | None = None


class AttentionSequence(NamedTuple):
    """What all looks of a sentence gave."""

    contexts: Float[Tensor, "batch target width"]
    weights: Alignment | None
    sample: AttentionSample | None = None


class AttentionScope(nn.Module, ABC):
    """Which part of a memory a query reads, and how."""

    attention: Attention

    @abstractmethod
    def attend(
        self, query: Float[Tensor, "batch query size"], memory: Memory, steps: Int[Tensor, " query"]
    ) -> AttentionResult:
        """Queries that belong to these steps read the memory."""


class GlobalScope(AttentionScope):
    """All of the memory: Luong's *global* attention, and Bahdanau's."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention

    def attend(
        self, query: Float[Tensor, "batch query size"], memory: Memory, steps: Int[Tensor, " query"]
    ) -> AttentionResult:
        return self.attention.attend(query, memory)


class MonotonicScope(AttentionScope):
    """Step t reads the positions t − radius … t + radius: *local-m*, for sources and targets of one order.

    Luong et al. 2015, §3.2 (*monotonic alignment*).
    """

    def __init__(self, attention: Attention, *, radius: int) -> None:
        super().__init__()
        self.attention, self.radius = attention, radius

    def attend(
        self, query: Float[Tensor, "batch query size"], memory: Memory, steps: Int[Tensor, " query"]
    ) -> AttentionResult:
        return self.attention.attend(query, memory, mask=CenteredWindow(steps, self.radius))


class PredictiveScope(AttentionScope):
    """Around a place that the query predicts, fading away from it: *local-p*. Luong et al. 2015, eq. 9-10."""

    def __init__(self, attention: Attention, *, radius: int, size: int) -> None:
        super().__init__()
        self.local = LocalAttention(attention, radius=radius, size=size)

    @property
    def attention(self) -> Attention:  # type: ignore[override]
        """The local layer's own."""
        return self.local.attention

    def attend(
        self, query: Float[Tensor, "batch query size"], memory: Memory, steps: Int[Tensor, " query"]
    ) -> AttentionResult:
        return self.local.attend(query, memory)


class DecoderAttention(nn.Module, ABC):
    """Gives a context of `width` numbers for each query.

    `ignores_query`: the context does not depend on the query. `parallel`: no look depends on the looks before it, so that
    all queries of a sentence can look at once.
    """

    width: int
    ignores_query: bool = False
    parallel: bool = True

    @abstractmethod
    def begin(self, encoded: EncoderOutput) -> DecoderAttentionState:
        """A source, before the first look."""

    @abstractmethod
    def attend_step(self, query: Float[Tensor, "row size"], seen: DecoderAttentionState) -> AttentionStep:
        """One look of each row."""

    @abstractmethod
    def attend_all(self, queries: Float[Tensor, "batch target size"], encoded: EncoderOutput) -> AttentionSequence:
        """All looks of a sentence at once; only where the reader is `parallel`."""


class FixedContext(DecoderAttention):
    """No attention: the same summary of the source at every step. Cho et al. 2014, eq. 9."""

    ignores_query = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def begin(self, encoded: EncoderOutput) -> DecoderAttentionState:
        vector = encoded.summary[:, None]
        return DecoderAttentionState(SharedState(Memory(vector, vector), vector.shape[0]))

    def attend_step(self, query: Float[Tensor, "row size"], seen: DecoderAttentionState) -> AttentionStep:
        context = seen.source.expand(query.device).value[:, 0]
        return AttentionStep(context, seen._replace(steps=seen.steps + 1), None)

    def attend_all(self, queries: Float[Tensor, "batch target size"], encoded: EncoderOutput) -> AttentionSequence:
        return AttentionSequence(encoded.summary[:, None].expand(-1, queries.shape[1], -1), None)


class ContentAttention(DecoderAttention):
    """Reads by attention. The source is projected once; the hypotheses of a sentence ask as its queries."""

    sequential: bool = False

    def __init__(self, gaze: AttentionScope, *, width: int) -> None:
        super().__init__()
        check_source_attention(gaze.attention, sequential=self.sequential)
        self.gaze, self.width = gaze, width

    def begin(self, encoded: EncoderOutput) -> DecoderAttentionState:
        memory = self.gaze.attention.remember(encoded.states, encoded.content, mask=encoded.mask)
        return DecoderAttentionState(SharedState(memory, encoded.states.shape[0]))

    def attend_step(self, query: Float[Tensor, "row size"], seen: DecoderAttentionState) -> AttentionStep:
        asked = seen.source.fold(query)
        steps = torch.as_tensor(seen.steps, device=query.device).expand(asked.shape[1])
        attended = self.gaze.attend(asked, seen.source.part, steps)
        weights = MeanAlignment(attended.weights, (query.shape[0],))
        return AttentionStep(attended.output.flatten(0, 1), seen._replace(steps=seen.steps + 1), weights)

    def attend_all(self, queries: Float[Tensor, "batch target size"], encoded: EncoderOutput) -> AttentionSequence:
        steps = torch.arange(queries.shape[1], device=queries.device)
        attended = self.gaze.attend(queries, self.begin(encoded).source.part, steps)
        return AttentionSequence(attended.output, MeanAlignment(attended.weights, tuple(queries.shape[:2])))


class HistoryAttention(ContentAttention):
    """Tells the keys where it looked before. Each look depends on those before it."""

    parallel = False

    @abstractmethod
    def add_history(self, memory: Memory, trail: Float[Tensor, "*lead source"]) -> Memory:
        """The memory with what is known of earlier looks added to its keys."""

    @abstractmethod
    def update_history(self, trail: Float[Tensor, "row source"], weights: Float[Tensor, "row source"]) -> Tensor:
        """The trail after a look with these weights."""

    def begin(self, encoded: EncoderOutput) -> DecoderAttentionState:
        seen = super().begin(encoded)
        return seen._replace(history=encoded.states.new_zeros(encoded.states.shape[:2]))

    def attend_step(self, query: Float[Tensor, "row size"], seen: DecoderAttentionState) -> AttentionStep:
        if seen.history is None:
            raise wrong("seen.trail", None, "what was looked at so far", "start from begin(encoded)")
        memory = self.add_history(seen.source.expand(query.device), seen.history[:, None])
        steps = torch.as_tensor(seen.steps, device=query.device).expand(1)
        attended = self.gaze.attend(query[:, None], memory, steps)
        weights = MeanAlignment(attended.weights, (query.shape[0],)).dense()
        later = seen._replace(steps=seen.steps + 1, history=self.update_history(seen.history, weights))
        return AttentionStep(attended.output[:, 0], later, StoredAlignment(weights))


class CoverageAttention(HistoryAttention):
    r"""Knows how much of each position was looked at, and adds that to its key.

    $$ e_{ij} = v^\top \tanh(W s_i + U h_j + u\, c_{ij}), \qquad c_i = \sum_{i' < i} \alpha_{i'} $$

    Tu et al. 2016, eq. 7 without fertility; See et al. 2017, eq. 11.
    """

    def __init__(self, gaze: AttentionScope, coverage: Coverage, *, width: int) -> None:
        super().__init__(gaze, width=width)
        self.coverage = coverage

    def add_history(self, memory: Memory, trail: Float[Tensor, "*lead source"]) -> Memory:
        told: Memory = self.coverage(memory, trail)
        return told

    def update_history(self, trail: Float[Tensor, "row source"], weights: Float[Tensor, "row source"]) -> Tensor:
        return trail + weights


class LocationAwareAttention(HistoryAttention):
    r"""Knows where the last look was, and adds features of that to the keys: *location-aware* attention.

    $$ e_{ij} = v^\top \tanh(W s_i + U h_j + V (F * \alpha_{i-1})_j) $$

    Chorowski et al. 2015, eq. 8-9. It can tell apart two places that sound alike, and go on from the last one.
    """

    def __init__(self, gaze: AttentionScope, location: LocationFeatures, *, width: int) -> None:
        super().__init__(gaze, width=width)
        self.location = location

    def add_history(self, memory: Memory, trail: Float[Tensor, "*lead source"]) -> Memory:
        told: Memory = self.location(memory, trail)
        return told

    def update_history(self, trail: Float[Tensor, "row source"], weights: Float[Tensor, "row source"]) -> Tensor:
        return weights


class MonotonicAttention(ContentAttention):
    """Goes on from where the last look was: attention under a monotonic normalizer. Raffel et al. 2017.

    The energy's own bias, $r$ in eq. 16 there, is the bias of the mechanism: one number, or one for each key.
    """

    sequential = True

    def __init__(self, gaze: AttentionScope, *, width: int) -> None:
        super().__init__(gaze, width=width)
        if not isinstance(gaze, GlobalScope):
            raise wrong(
                "gaze", type(gaze).__name__, "Everywhere, because a walk goes over all keys", "use Everywhere(…)"
            )
        check_single_head(gaze.attention, "leave it out: a walk is soft, or hard by HardMonotonic()")
        normalizer = gaze.attention.mechanism.normalizer
        if not isinstance(normalizer, SequentialNormalizer):
            expected, fix = "a normalizer whose rows follow one another", "read with Attentive(…)"
            raise wrong_kind("normalizer", type(normalizer).__name__, expected, fix)
        self.normalizer = normalizer

    def attend_step(self, query: Float[Tensor, "row size"], seen: DecoderAttentionState) -> AttentionStep:
        memory, attention = seen.source.expand(query.device), self.gaze.attention
        asked = attention.projections.project_queries(query[:, None])
        parts, pairs = build_parts(attention, asked, memory), Pairs(1, memory.length, device=query.device)
        scores = score_pairs(parts, parts.score.stream, asked, memory.key, pairs)
        allowed = parts.mask.table(1, memory.length, device=query.device)
        previous = None if seen.history is None else seen.history[:, None]
        weights, walked = self._step_normalizer(scores, allowed, previous)
        notify_watchers(weights)
        context = attention.projections.merge(drop_weights(attention, weights, pairs) @ memory.value)[:, 0]
        later = seen._replace(steps=seen.steps + 1, history=walked[:, 0, 0])
        return AttentionStep(context, later, StoredAlignment(weights[:, 0, 0]))

    def _step_normalizer(self, scores: Tensor, allowed: Tensor, previous: Tensor | None) -> tuple[Tensor, Tensor]:
        """The weights of this look, and those to go on from."""
        if isinstance(self.normalizer, ChunkwiseMonotonic):
            walked = self.normalizer.walk.step(scores, allowed, previous=previous)
            return self.normalizer.attend_chunks(walked, scores, allowed), walked
        weights = self.normalizer.step(scores, allowed, previous=previous)
        return weights, weights
