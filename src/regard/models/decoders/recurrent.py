"""Recurrent decoders: attention before the cell (Bahdanau) or after it (Luong)."""

from abc import abstractmethod
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.dropout import dropout
from regard.layers.projections import build_linear
from regard.models.decoders.decoder_attention import AttentionSequence, DecoderAttention, DecoderAttentionState
from regard.models.embedding import TokenEmbedding
from regard.models.interface import Decoder, DecoderStep, EncoderOutput, StepwiseAlignment, TeacherForcingOutput
from regard.models.recurrence import Cells, HiddenState, run_cells, step_cells
from regard.models.segments import Segments


class RecurrentState(NamedTuple):
    """What a recurrent decoder remembers: its cells, the source, and what it feeds itself (None: nothing)."""

    hidden: HiddenState
    attention: DecoderAttentionState
    input_feed: Float[Tensor, "row size"] | None = None


class Bridge(nn.Module):
    r"""Where a decoder's cells start: $s_0 = \tanh(W c)$ with $c$ = the summary of the source.

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
    """What the recurrent decoders share: words, cells, a reader, a start, and dropout before the output."""

    def __init__(
        self,
        words: TokenEmbedding,
        cells: Cells,
        reader: DecoderAttention,
        output: nn.Linear,
        *,
        summary: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words, self.cells, self.reader, self.output = words, cells, reader, output
        self.bridge = Bridge(summary, cells)
        self.dropout = dropout

    def begin(self, encoded: EncoderOutput) -> RecurrentState:
        return RecurrentState(self.bridge(encoded.summary), self.reader.begin(encoded))

    def advance(self, token: Int[Tensor, " row"], state: RecurrentState) -> DecoderStep[RecurrentState]:
        return self.advance_from_embedding(self.words(token[:, None])[:, 0], state)

    @abstractmethod
    def advance_from_embedding(
        self, word: Float[Tensor, "row width"], state: RecurrentState
    ) -> DecoderStep[RecurrentState]:
        """One step, given the vector of the last token."""

    def apply_dropout(self, vectors: Tensor) -> Tensor:
        """With dropout while training."""
        return dropout(vectors, self.dropout) if self.training else vectors


class BahdanauDecoder(RecurrentDecoder):
    r"""Looks first, with its last state as the query, then takes a step.

    $$ c_i = \mathrm{read}(s_{i-1}), \qquad s_i = f([E y_{i-1}; c_i], s_{i-1}), \qquad t_i = \tanh(W [s_i; c_i;
    E y_{i-1}]) $$

    with $f$ = `cells`, $W$ = `readout` and $t$ what the output layer is given. Bahdanau et al. 2015, §3.1 and §A.2.2,
    with tanh for their maxout, as in Sennrich et al. 2017 (Nematus). With a reader that has no attention this is the
    encoder-decoder of Cho et al. 2014.
    """

    def __init__(
        self,
        words: TokenEmbedding,
        cells: Cells,
        reader: DecoderAttention,
        output: nn.Linear,
        *,
        summary: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(words, cells, reader, output, summary=summary, dropout=dropout)
        self.readout = build_linear(cells.hidden_size + reader.width + words.width, output.in_features)

    def advance_from_embedding(
        self, word: Float[Tensor, "row width"], state: RecurrentState
    ) -> DecoderStep[RecurrentState]:
        context, seen, weights, _ = self.reader.attend_step(state.hidden.top, state.attention)
        hidden = step_cells(self.cells, torch.cat([word, context], dim=-1), state.hidden)
        return DecoderStep(self.compute_readout(hidden.top, context, word), RecurrentState(hidden, seen), weights)

    def compute_readout(self, state: Tensor, context: Tensor, word: Tensor) -> Tensor:
        """What the output layer is given."""
        vector: Tensor = torch.tanh(self.readout(torch.cat([state, context, word], dim=-1)))
        return self.apply_dropout(vector)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        words = self.words(tokens)
        if self.reader.ignores_query:
            overview = self.reader.attend_all(words, encoded)
            inputs = torch.cat([words, overview.contexts], dim=-1)
            states = run_cells(self.cells, inputs, start=self.bridge(encoded.summary)).states
        else:
            states, overview = self.run_steps(words, encoded, Segments.from_lengths(lengths, *words.shape[:2]))
        return TeacherForcingOutput(
            self.compute_readout(states, overview.contexts, words), overview.weights, overview.sample
        )

    def run_steps(
        self, words: Float[Tensor, "batch target width"], encoded: EncoderOutput, plan: Segments
    ) -> tuple[Tensor, AttentionSequence]:
        """The states and contexts of all steps, one after another; what comes after them is done at once."""
        states, lengths, summary = (plan.sort_rows(part) for part in encoded[:3])
        content = None if encoded.content is None else plan.sort_rows(encoded.content)
        hidden, seen, _ = self.begin(EncoderOutput(states, lengths, summary, content))
        words = plan.sort_rows(words)
        tops, contexts, weights, draws = [], [], [], []
        for start, stop, rows in plan.parts:
            hidden, seen = hidden.select_rows(slice(rows)), seen.take_first(rows)
            for word in words[:rows, start:stop].unbind(1):
                looked = self.reader.attend_step(hidden.top, seen)
                hidden, seen = step_cells(self.cells, torch.cat([word, looked.context], dim=-1), hidden), looked.state
                tops.append(hidden.top)
                contexts.append(looked.context)
                weights.append(looked.weights)
                draws.append(looked.sample)
        overview = AttentionSequence(
            plan.stack_steps(contexts), plan.build_alignment(weights), plan.stack_samples(draws)
        )
        return plan.stack_steps(tops), overview


class LuongDecoder(RecurrentDecoder):
    r"""Takes a step first, then looks with its new state as the query.

    $$ h_t = f(E y_{t-1}, h_{t-1}), \qquad c_t = \mathrm{read}(h_t), \qquad \tilde h_t = \tanh(W_c [c_t; h_t]) $$

    with $f$ = `cells`, $W_c$ = `combine` and $\tilde h$ what the output layer is given. Luong et al. 2015, eq. 5. No
    step needs the context of the one before, so that all steps of a known target run at once.
    """

    def __init__(
        self,
        words: TokenEmbedding,
        cells: Cells,
        reader: DecoderAttention,
        output: nn.Linear,
        *,
        summary: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(words, cells, reader, output, summary=summary, dropout=dropout)
        self.combine = build_linear(reader.width + cells.hidden_size, output.in_features, bias=False)

    def advance_from_embedding(
        self, word: Float[Tensor, "row width"], state: RecurrentState
    ) -> DecoderStep[RecurrentState]:
        hidden = step_cells(self.cells, word, state.hidden)
        context, seen, weights, _ = self.reader.attend_step(hidden.top, state.attention)
        return DecoderStep(self.compute_attentional_vector(context, hidden.top), RecurrentState(hidden, seen), weights)

    def compute_attentional_vector(self, context: Tensor, state: Tensor) -> Tensor:
        """The attentional vector."""
        vector: Tensor = torch.tanh(self.combine(torch.cat([context, state], dim=-1)))
        return self.apply_dropout(vector)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        states = run_cells(self.cells, self.words(tokens), start=self.bridge(encoded.summary)).states
        if self.reader.parallel:
            overview = self.reader.attend_all(states, encoded)
        else:
            overview = self.attend_steps(states, encoded)
        return TeacherForcingOutput(
            self.compute_attentional_vector(overview.contexts, states), overview.weights, overview.sample
        )

    def attend_steps(self, states: Float[Tensor, "batch target size"], encoded: EncoderOutput) -> AttentionSequence:
        """One look after another, where each depends on those before."""
        seen, contexts, weights = self.reader.begin(encoded), [], []
        for state in states.unbind(1):
            looked = self.reader.attend_step(state, seen)
            seen = looked.state
            contexts.append(looked.context)
            weights.append(looked.weights)
        return AttentionSequence(torch.stack(contexts, dim=1), StepwiseAlignment.from_steps(weights))


class InputFeedingDecoder(LuongDecoder):
    r"""Luong's decoder that is told what it decided last: *input feeding*.

    $$ h_t = f([E y_{t-1}; \tilde h_{t-1}], h_{t-1}), \qquad \tilde h_0 = 0 $$

    Luong et al. 2015, §3.3. One step after another, because each needs the context of the one before.
    """

    def begin(self, encoded: EncoderOutput) -> RecurrentState:
        nothing = encoded.states.new_zeros(encoded.states.shape[0], self.combine.out_features)
        return super().begin(encoded)._replace(input_feed=nothing)

    def advance_from_embedding(
        self, word: Float[Tensor, "row width"], state: RecurrentState
    ) -> DecoderStep[RecurrentState]:
        fed = word if state.input_feed is None else torch.cat([word, state.input_feed], dim=-1)
        taken = super().advance_from_embedding(fed, state)
        return replace(taken, state=taken.state._replace(input_feed=taken.vector))

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        state, vectors, weights = self.begin(encoded), [], []
        for word in self.words(tokens).unbind(1):
            taken = self.advance_from_embedding(word, state)
            state = taken.state
            vectors.append(taken.vector)
            weights.append(taken.weights)
        return TeacherForcingOutput(torch.stack(vectors, dim=1), StepwiseAlignment.from_steps(weights))
