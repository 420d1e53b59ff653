"""Recurrent decoders: attention before the cell (Bahdanau) or after it (Luong)."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.dropout import dropout
from regard.layers.projections import build_linear
from regard.models.config import ModelConfig
from regard.models.decoders.decoder_attention import (
    AttentionSequence,
    AttentionStep,
    DecoderAttention,
    DecoderAttentionState,
    FixedContext,
    build_decoder_attention,
)
from regard.models.embedding import TokenEmbedding, build_token_embedding
from regard.models.exported_state import ROW, SOURCE, StateTensor
from regard.models.interface import (
    Decoder,
    DecoderStep,
    Encoder,
    EncoderOutput,
    StepwiseAlignment,
    TeacherForcingOutput,
    run_steps,
    stack_steps,
)
from regard.models.recurrence import Cells, HiddenState, build_cells, run_cells, step_cells
from regard.models.segments import Segments
from regard.models.selection import SharedState


class RecurrentState(NamedTuple):
    """The states of the cells and of the attention, and the attentional vector that is fed back (None: not fed)."""

    hidden: HiddenState
    attention: DecoderAttentionState
    input_feed: Float[Tensor, "row size"] | None = None


class Bridge(nn.Module):
    r"""Computes the first state of a decoder's cells: $s_0 = \tanh(W c)$ with $c$ = the summary of the source.

    Bahdanau et al. 2015, §A.2.2, for each layer and, of an LSTM, for its cells too.
    """

    def __init__(self, summary: int, cells: Cells) -> None:
        super().__init__()
        self.layers, self.size = cells.num_layers, cells.hidden_size
        self.start = build_linear(summary, self.layers * self.size)
        self.cell = build_linear(summary, self.layers * self.size) if isinstance(cells, nn.LSTM) else None

    def forward(self, summary: Float[Tensor, "batch summary"]) -> HiddenState:
        parts = [torch.tanh(linear(summary)) for linear in (self.start, self.cell) if linear is not None]
        return HiddenState(*(part.unflatten(-1, (self.layers, self.size)) for part in parts))


class RecurrentDecoder(Decoder[RecurrentState]):
    """What the recurrent decoders share: embedding, cells, attention, first state, and dropout before the output."""

    def __init__(
        self,
        embedding: TokenEmbedding,
        cells: Cells,
        attention: DecoderAttention,
        output: nn.Linear,
        *,
        summary: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.cells, self.attention, self.output = embedding, cells, attention, output
        self.bridge = Bridge(summary, cells)
        self.combine = self.build_combine()
        self.dropout = dropout

    @abstractmethod
    def build_combine(self) -> nn.Linear:
        """Build the matrix that combines cell state and context to a vector for the output layer."""

    def compute_vector(self, *parts: Tensor) -> Tensor:
        """Return the vector for the output layer."""
        vector: Tensor = torch.tanh(self.combine(torch.cat(parts, dim=-1)))
        return dropout(vector, self.dropout) if self.training else vector

    def begin(self, encoded: EncoderOutput) -> RecurrentState:
        return RecurrentState(self.bridge(encoded.summary), self.attention.begin(encoded))

    def advance(self, token: Int[Tensor, " row"], state: RecurrentState) -> DecoderStep[RecurrentState]:
        return self.advance_from_embedding(self.embedding(token[:, None])[:, 0], state)

    @abstractmethod
    def advance_from_embedding(
        self, vector: Float[Tensor, "row width"], state: RecurrentState
    ) -> DecoderStep[RecurrentState]:
        """Take one step with the vector of the last token of each row."""

    def export_source(self, state: RecurrentState, encoded: EncoderOutput) -> list[StateTensor]:
        return self.attention.export_source(state.attention, encoded)

    def export_state(self, state: RecurrentState, steps: Int[Tensor, " row"]) -> list[StateTensor]:
        parts = {"hidden": state.hidden.states, "cells": state.hidden.cells, "fed": state.input_feed}
        tensors = [StateTensor(name, part, {0: ROW}) for name, part in parts.items() if part is not None]
        if state.attention.history is not None:
            tensors.append(StateTensor("trail", state.attention.history, {0: ROW, 1: SOURCE}))
        return [*tensors, StateTensor("steps", steps, {0: ROW})]

    def assemble(self, tensors: Mapping[str, Tensor]) -> RecurrentState:
        source = SharedState(self.attention.assemble_source(tensors), tensors["hidden"].shape[0])
        attention = DecoderAttentionState(source, tensors["steps"][:1], tensors.get("trail"))  # type: ignore[arg-type]
        return RecurrentState(HiddenState(tensors["hidden"], tensors.get("cells")), attention, tensors.get("fed"))


class BahdanauDecoder(RecurrentDecoder):
    r"""Attends first, with its last state as the query, then takes a step.

    $$ c_i = \mathrm{attend}(s_{i-1}), \qquad s_i = f([E y_{i-1}; c_i], s_{i-1}), \qquad t_i = \tanh(W [s_i; c_i;
    E y_{i-1}]) $$

    with $f$ = `cells`, $W$ = `combine` and $t$ the vector for the output layer. Bahdanau et al. 2015, §3.1 and §A.2.2,
    with tanh for their maxout, as in Sennrich et al. 2017 (Nematus). With `FixedContext` this is the encoder–decoder of
    Cho et al. 2014.
    """

    def build_combine(self) -> nn.Linear:
        width = self.cells.hidden_size + self.attention.width + self.embedding.width
        return build_linear(width, self.output.in_features)

    def advance_from_embedding(
        self, vector: Float[Tensor, "row width"], state: RecurrentState
    ) -> DecoderStep[RecurrentState]:
        context, attention, weights, _ = self.attention.attend_step(state.hidden.top, state.attention)
        hidden = step_cells(self.cells, torch.cat([vector, context], dim=-1), state.hidden)
        return DecoderStep(self.compute_vector(hidden.top, context, vector), RecurrentState(hidden, attention), weights)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        vectors = self.embedding(tokens)
        if self.attention.ignores_query:
            attended = self.attention.attend_all(vectors, encoded)
            inputs = torch.cat([vectors, attended.contexts], dim=-1)
            states = run_cells(self.cells, inputs, start=self.bridge(encoded.summary)).states
        else:
            segments = Segments.from_lengths(lengths, *vectors.shape[:2])
            states, attended = self.run_segments(vectors, encoded, segments)
        output = self.compute_vector(states, attended.contexts, vectors)
        return TeacherForcingOutput(output, attended.weights, attended.sample)

    def run_segments(
        self, vectors: Float[Tensor, "batch target width"], encoded: EncoderOutput, segments: Segments
    ) -> tuple[Tensor, AttentionSequence]:
        """Return the states and contexts of all steps, which depend on one another; the rest is done at once."""
        sorted_parts = [None if part is None else segments.sort_rows(part) for part in encoded]
        hidden, attention, _ = self.begin(EncoderOutput(*sorted_parts))  # type: ignore[arg-type]
        vectors = segments.sort_rows(vectors)
        states: list[Tensor] = []
        steps: list[AttentionStep] = []
        for start, stop, rows in segments.parts:
            hidden, attention = hidden.select_rows(slice(rows)), attention.take_first(rows)
            for vector in vectors[:rows, start:stop].unbind(1):
                step = self.attention.attend_step(hidden.top, attention)
                hidden = step_cells(self.cells, torch.cat([vector, step.context], dim=-1), hidden)
                attention = step.state
                states.append(hidden.top)
                steps.append(step)
        return segments.stack_steps(states), AttentionSequence(
            segments.stack_steps([step.context for step in steps]),
            StepwiseAlignment.from_steps([step.weights for step in steps], segments.stack_steps),
            segments.stack_samples([step.sample for step in steps]),
        )


class LuongDecoder(RecurrentDecoder):
    r"""Takes a step first, then attends with its new state as the query.

    $$ h_t = f(E y_{t-1}, h_{t-1}), \qquad c_t = \mathrm{attend}(h_t), \qquad \tilde h_t = \tanh(W_c [c_t; h_t]) $$

    with $f$ = `cells`, $W_c$ = `combine` and $\tilde h$ the vector for the output layer. Luong et al. 2015, eq. 5. No
    step needs the context of the one before, so that all steps of a known target run at once.
    """

    def build_combine(self) -> nn.Linear:
        return build_linear(self.attention.width + self.cells.hidden_size, self.output.in_features, bias=False)

    def advance_from_embedding(
        self, vector: Float[Tensor, "row width"], state: RecurrentState
    ) -> DecoderStep[RecurrentState]:
        hidden = step_cells(self.cells, vector, state.hidden)
        context, attention, weights, _ = self.attention.attend_step(hidden.top, state.attention)
        return DecoderStep(self.compute_vector(context, hidden.top), RecurrentState(hidden, attention), weights)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        states = run_cells(self.cells, self.embedding(tokens), start=self.bridge(encoded.summary)).states
        attend = self.attention.attend_all if self.attention.parallel else self.attend_steps
        contexts, weights, sample = attend(states, encoded)
        return TeacherForcingOutput(self.compute_vector(contexts, states), weights, sample)

    def attend_steps(self, states: Float[Tensor, "batch target size"], encoded: EncoderOutput) -> AttentionSequence:
        """Attend one step after another, if each depends on those before it."""
        attention, contexts, weights = self.attention.begin(encoded), [], []
        for state in states.unbind(1):
            context, attention, step_weights, _ = self.attention.attend_step(state, attention)
            contexts.append(context)
            weights.append(step_weights)
        return AttentionSequence(stack_steps(contexts), StepwiseAlignment.from_steps(weights))


class InputFeedingDecoder(LuongDecoder):
    r"""Luong's decoder whose last attentional vector is part of its input: *input feeding*.

    $$ h_t = f([E y_{t-1}; \tilde h_{t-1}], h_{t-1}), \qquad \tilde h_0 = 0 $$

    Luong et al. 2015, §3.3. One step after another, because each needs the context of the one before.
    """

    def begin(self, encoded: EncoderOutput) -> RecurrentState:
        zeros = encoded.states.new_zeros(encoded.states.shape[0], self.combine.out_features)
        return super().begin(encoded)._replace(input_feed=zeros)

    def advance_from_embedding(
        self, vector: Float[Tensor, "row width"], state: RecurrentState
    ) -> DecoderStep[RecurrentState]:
        inputs = vector if state.input_feed is None else torch.cat([vector, state.input_feed], dim=-1)
        step = super().advance_from_embedding(inputs, state)
        return replace(step, state=step.state._replace(input_feed=step.vector))

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        return run_steps(self.advance_from_embedding, self.embedding(tokens), self.begin(encoded))


def build_bahdanau(config: ModelConfig, table: nn.Embedding, encoder: Encoder, output: nn.Linear) -> RecurrentDecoder:
    """Build Bahdanau's decoder of a configuration."""
    attention = build_decoder_attention(config, encoder)
    return _build(BahdanauDecoder, attention, attention.width, config, table, encoder.summary, output)


def build_plain(config: ModelConfig, table: nn.Embedding, encoder: Encoder, output: nn.Linear) -> RecurrentDecoder:
    """Build a decoder without attention."""
    attention = FixedContext(encoder.summary)
    return _build(BahdanauDecoder, attention, attention.width, config, table, encoder.summary, output)


def build_luong(config: ModelConfig, table: nn.Embedding, encoder: Encoder, output: nn.Linear) -> RecurrentDecoder:
    """Build Luong's decoder of a configuration, with or without input feeding."""
    kind, extra = (InputFeedingDecoder, output.in_features) if config.attention.feeding else (LuongDecoder, 0)
    return _build(kind, build_decoder_attention(config, encoder), extra, config, table, encoder.summary, output)


def _build(
    kind: type[RecurrentDecoder],
    attention: DecoderAttention,
    extra: int,
    config: ModelConfig,
    table: nn.Embedding,
    summary: int,
    output: nn.Linear,
) -> RecurrentDecoder:
    """Build a decoder whose cells have `extra` inputs beside the token's vector."""
    embedding = build_token_embedding(config, table, "recurrent")
    cells = build_cells(config, config.size + extra, bidirectional=False)
    return kind(embedding, cells, attention, output, summary=summary, dropout=config.dropout)
