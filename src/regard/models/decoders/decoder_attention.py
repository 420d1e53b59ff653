"""Cross-attention of recurrent decoders, one step at a time or all steps at once.

The layers hold parameters only. What they know of a source, and of earlier weights, is passed in and out.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.definition import score_pairs
from regard.algebra.normalizers import ChunkwiseMonotonic, SequentialNormalizer
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.algebra.shapes import Float, Tensor
from regard.compute.watchers import notify_watchers
from regard.errors import wrong, wrong_kind
from regard.layers.attention import Role
from regard.layers.location import Coverage, LocationFeatures
from regard.layers.memory import Memory
from regard.models.attention_builder import build_cross_attention, compute_key_width
from regard.models.config import ModelConfig
from regard.models.decoders.attention_checks import build_parts, check_single_head, check_source_attention, drop_weights
from regard.models.decoders.attention_scopes import AttentionScope, GlobalScope, build_scope
from regard.models.exported_state import ROW, StateTensor, assemble_memories, export_memories
from regard.models.interface import Alignment, AttentionSample, Encoder, EncoderOutput, MeanAlignment, StoredAlignment
from regard.models.selection import SharedState


class DecoderAttentionState(NamedTuple):
    """The projected source, the number of steps so far, and a summary of their weights."""

    source: SharedState[Memory]
    steps: int = 0
    history: Float[Tensor, "row source"] | None = None

    def take_first(self, rows: int) -> "DecoderAttentionState":
        """Return the state of the first sentences, if each has one row; nothing is copied."""
        if rows == self.source.sentences:
            return self
        history = None if self.history is None else self.history[:rows]
        return DecoderAttentionState(SharedState(self.source.part.take_first(rows), rows), self.steps, history)


class AttentionStep(NamedTuple):
    """One step: a context for each row, the state after it, the weights, and what hard attention sampled."""

    context: Float[Tensor, "row width"]
    state: DecoderAttentionState
    weights: Alignment | None
    sample: AttentionSample | None = None


class AttentionSequence(NamedTuple):
    """All steps of a batch of sentences."""

    contexts: Float[Tensor, "batch target width"]
    weights: Alignment | None
    sample: AttentionSample | None = None


class DecoderAttention(nn.Module, ABC):
    """Gives a context of `width` numbers for each query.

    `ignores_query`: the context does not depend on the query. `parallel`: no step depends on the weights of the steps
    before it, so that all queries of a sentence can attend at once.
    """

    role: Role = "cross"
    width: int
    ignores_query: bool = False
    parallel: bool = True

    @abstractmethod
    def begin(self, encoded: EncoderOutput) -> DecoderAttentionState:
        """Return the state before the first step."""

    @abstractmethod
    def attend_step(self, query: Float[Tensor, "row size"], state: DecoderAttentionState) -> AttentionStep:
        """Attend with one query of each row."""

    @abstractmethod
    def attend_all(self, queries: Float[Tensor, "batch target size"], encoded: EncoderOutput) -> AttentionSequence:
        """Attend with all queries of a sentence at once; only if the attention is `parallel`."""

    def export_source(self, state: DecoderAttentionState, encoded: EncoderOutput) -> list[StateTensor]:
        """Return the tensors of a state that no step changes."""
        return export_memories([state.source.part], encoded.lengths)

    def assemble_source(self, tensors: Mapping[str, Tensor]) -> Memory:
        """Return the projected source that `export_source` took apart."""
        return assemble_memories(tensors, 1)[0]


class FixedContext(DecoderAttention):
    """No attention: the same summary of the source at every step. Cho et al. 2014, eq. 9."""

    ignores_query = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def begin(self, encoded: EncoderOutput) -> DecoderAttentionState:
        vector = encoded.summary[:, None]
        return DecoderAttentionState(SharedState(Memory(vector, vector), vector.shape[0]))

    def attend_step(self, query: Float[Tensor, "row size"], state: DecoderAttentionState) -> AttentionStep:
        context = state.source.expand(query.device).value[:, 0]
        return AttentionStep(context, state._replace(steps=state.steps + 1), None)

    def attend_all(self, queries: Float[Tensor, "batch target size"], encoded: EncoderOutput) -> AttentionSequence:
        return AttentionSequence(encoded.summary[:, None].expand(-1, queries.shape[1], -1), None)

    def export_source(self, state: DecoderAttentionState, encoded: EncoderOutput) -> list[StateTensor]:
        return [StateTensor("summary", encoded.summary, {0: ROW})]

    def assemble_source(self, tensors: Mapping[str, Tensor]) -> Memory:
        vector = tensors["summary"][:, None]
        return Memory(vector, vector)


class ContentAttention(DecoderAttention):
    """Attends to the source, which is projected once; the hypotheses of a sentence are its queries."""

    sequential: bool = False

    def __init__(self, scope: AttentionScope, *, width: int) -> None:
        super().__init__()
        check_source_attention(scope.attention, sequential=self.sequential)
        scope.attention.role = self.role
        self.scope, self.width = scope, width

    def begin(self, encoded: EncoderOutput) -> DecoderAttentionState:
        memory = self.scope.attention.remember(encoded.states, encoded.content, mask=encoded.mask)
        return DecoderAttentionState(SharedState(memory, encoded.states.shape[0]))

    def attend_step(self, query: Float[Tensor, "row size"], state: DecoderAttentionState) -> AttentionStep:
        queries = state.source.fold(query)
        steps = torch.as_tensor(state.steps, device=query.device).expand(queries.shape[1])
        attended = self.scope.attend(queries, state.source.part, steps)
        weights = MeanAlignment(attended.weights, (query.shape[0],))
        return AttentionStep(attended.output.flatten(0, 1), state._replace(steps=state.steps + 1), weights)

    def attend_all(self, queries: Float[Tensor, "batch target size"], encoded: EncoderOutput) -> AttentionSequence:
        steps = torch.arange(queries.shape[1], device=queries.device)
        attended = self.scope.attend(queries, self.begin(encoded).source.part, steps)
        return AttentionSequence(attended.output, MeanAlignment(attended.weights, tuple(queries.shape[:2])))


class HistoryAttention(ContentAttention):
    """Adds `features` of the weights so far to the keys, so that each step depends on those before it."""

    parallel = False

    def __init__(self, scope: AttentionScope, features: Coverage | LocationFeatures, *, width: int) -> None:
        super().__init__(scope, width=width)
        self.features = features

    @abstractmethod
    def update_history(self, history: Float[Tensor, "row source"], weights: Float[Tensor, "row source"]) -> Tensor:
        """Return the history after a step with these weights."""

    def begin(self, encoded: EncoderOutput) -> DecoderAttentionState:
        return super().begin(encoded)._replace(history=encoded.states.new_zeros(encoded.states.shape[:2]))

    def attend_step(self, query: Float[Tensor, "row size"], state: DecoderAttentionState) -> AttentionStep:
        if state.history is None:
            raise wrong("state.history", None, "the weights so far", "start from begin(encoded)")
        memory = self.features(state.source.expand(query.device), state.history[:, None])
        steps = torch.as_tensor(state.steps, device=query.device).expand(1)
        attended = self.scope.attend(query[:, None], memory, steps)
        weights = MeanAlignment(attended.weights, (query.shape[0],)).dense()
        later = state._replace(steps=state.steps + 1, history=self.update_history(state.history, weights))
        return AttentionStep(attended.output[:, 0], later, StoredAlignment(weights))


class CoverageAttention(HistoryAttention):
    r"""Adds to each key how much attention it has received.

    $$ e_{ij} = v^\top \tanh(W s_i + U h_j + u\, c_{ij}), \qquad c_i = \sum_{i' < i} \alpha_{i'} $$

    with $u$ = `features`, a `Coverage`. Tu et al. 2016, eq. 7 without fertility; See et al. 2017, eq. 11.
    """

    def update_history(self, history: Float[Tensor, "row source"], weights: Float[Tensor, "row source"]) -> Tensor:
        return history + weights


class LocationAwareAttention(HistoryAttention):
    r"""Adds features of the last weights to the keys: *location-aware* attention.

    $$ e_{ij} = v^\top \tanh(W s_i + U h_j + V (F * \alpha_{i-1})_j) $$

    with $V$ and $F$ in `features`, `LocationFeatures`. Chorowski et al. 2015, eq. 8-9. It can tell apart positions
    whose content is alike, and go on from the last one.
    """

    def update_history(self, history: Float[Tensor, "row source"], weights: Float[Tensor, "row source"]) -> Tensor:
        return weights


class MonotonicAttention(ContentAttention):
    """Moves forward from the last weights: attention under a monotonic normalizer. Raffel et al. 2017.

    The energy's own bias, $r$ in eq. 16 there, is the bias of the mechanism: one number, or one for each key.
    """

    sequential = True

    def __init__(self, scope: AttentionScope, *, width: int) -> None:
        super().__init__(scope, width=width)
        if not isinstance(scope, GlobalScope):
            expected = "GlobalScope, because monotonic attention goes over all keys"
            raise wrong("scope", type(scope).__name__, expected, "use GlobalScope(…)")
        check_single_head(scope.attention, "leave it out: monotonic attention is soft, or hard by HardMonotonic()")
        normalizer = scope.attention.mechanism.normalizer
        if not isinstance(normalizer, SequentialNormalizer):
            expected, fix = "a normalizer whose rows follow one another", "use ContentAttention(…)"
            raise wrong_kind("normalizer", type(normalizer).__name__, expected, fix)
        self.normalizer = normalizer

    def attend_step(self, query: Float[Tensor, "row size"], state: DecoderAttentionState) -> AttentionStep:
        memory, attention = state.source.expand(query.device), self.scope.attention
        projected = attention.projections.project_queries(query[:, None])
        parts, pairs = build_parts(attention, projected, memory), Pairs(1, memory.length, device=query.device)
        scores = score_pairs(parts, parts.score.stream, projected, memory.key, pairs)
        allowed = parts.mask.table(1, memory.length, device=query.device)
        previous = None if state.history is None else state.history[:, None]
        weights, alignment = self._step_normalizer(scores, allowed, previous)
        notify_watchers(weights, AttentionCall(parts, projected, memory.key, memory.value))
        context = attention.projections.merge(drop_weights(attention, weights, pairs) @ memory.value)[:, 0]
        later = state._replace(steps=state.steps + 1, history=alignment[:, 0, 0])
        return AttentionStep(context, later, StoredAlignment(weights[:, 0, 0]))

    def _step_normalizer(self, scores: Tensor, allowed: Tensor, previous: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the weights of this step, and those that the next step starts from."""
        if isinstance(self.normalizer, ChunkwiseMonotonic):
            alignment = self.normalizer.walk.step(scores, allowed, previous=previous)
            return self.normalizer.attend_chunks(alignment, scores, allowed), alignment
        weights = self.normalizer.step(scores, allowed, previous=previous)
        return weights, weights

    def export_source(self, state: DecoderAttentionState, encoded: EncoderOutput) -> list[StateTensor]:
        expected = "one without a walk, which is as long as the source"
        raise wrong("normalizer", type(self.normalizer).__name__, expected, "export it as safetensors")


def build_decoder_attention(config: ModelConfig, encoder: Encoder) -> DecoderAttention:
    """Build the attention of a recurrent decoder from a configuration."""
    options, size = config.attention, config.recurrent.hidden
    attention = build_cross_attention(config, size, encoder, sequential=True)
    scope = build_scope(options, attention, size=size)
    if isinstance(attention.mechanism.normalizer, SequentialNormalizer):
        if options.coverage or options.location or options.scope != "global":
            got = f"{options.normalizer} with coverage, location or a local scope"
            fix = 'use scope = "global", coverage = false and location = false'
            raise wrong("attention.normalizer", got, "monotonic attention to the whole source", fix)
        return MonotonicAttention(scope, width=encoder.content)
    if options.coverage:
        return CoverageAttention(scope, Coverage(compute_key_width(config, size, encoder)), width=encoder.content)
    if options.location:
        features = LocationFeatures(compute_key_width(config, size, encoder))
        return LocationAwareAttention(scope, features, width=encoder.content)
    return ContentAttention(scope, width=encoder.content)
