"""Recurrent decoders: attention before the cell (Bahdanau) or after it (Luong)."""

from abc import abstractmethod
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.dropout import dropout
from regard.layers.projections import dense
from regard.models.decoders.reading import Overview, Reader, Seen
from regard.models.interface import Advanced, Decoder, Encoded, InTurn, Taught
from regard.models.recurrence import Cells, Hidden, run, step
from regard.models.stretches import Stretches
from regard.models.words import Words


class RecurrentState(NamedTuple):
    """What a recurrent decoder remembers: its cells, the source, and what it feeds itself (None: nothing)."""

    hidden: Hidden
    seen: Seen
    fed: Float[Tensor, "row size"] | None = None


class Bridge(nn.Module):
    r"""Where a decoder's cells start: $s_0 = \tanh(W c)$ with $c$ = the summary of the source.

    Bahdanau et al. 2015, §A.2.2, for each layer and, of an LSTM, for its cells too.
    """

    def __init__(self, summary: int, cells: Cells) -> None:
        super().__init__()
        self.layers, self.size = cells.num_layers, cells.hidden_size
        self.start = dense(summary, self.layers * self.size)
        self.cell = dense(summary, self.layers * self.size) if isinstance(cells, nn.LSTM) else None

    def forward(self, summary: Float[Tensor, "batch summary"]) -> Hidden:
        parts = [torch.tanh(linear(summary)) for linear in (self.start, self.cell) if linear is not None]
        return Hidden(*(part.unflatten(-1, (self.layers, self.size)) for part in parts))


class RecurrentDecoder(Decoder[RecurrentState]):
    """What the recurrent decoders share: words, cells, a reader, a start, and dropout before the output."""

    def __init__(
        self, words: Words, cells: Cells, reader: Reader, output: nn.Linear, *, summary: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.words, self.cells, self.reader, self.output = words, cells, reader, output
        self.bridge = Bridge(summary, cells)
        self.dropout = dropout

    def begin(self, encoded: Encoded) -> RecurrentState:
        return RecurrentState(self.bridge(encoded.summary), self.reader.begin(encoded))

    def advance(self, token: Int[Tensor, " row"], state: RecurrentState) -> Advanced[RecurrentState]:
        return self.go_on(self.words(token[:, None])[:, 0], state)

    @abstractmethod
    def go_on(self, word: Float[Tensor, "row width"], state: RecurrentState) -> Advanced[RecurrentState]:
        """One step, given the vector of the last token."""

    def dropped(self, vectors: Tensor) -> Tensor:
        """With dropout while training."""
        return dropout(vectors, self.dropout) if self.training else vectors


class Bahdanau(RecurrentDecoder):
    r"""Looks first, with its last state as the query, then takes a step.

    $$ c_i = \mathrm{read}(s_{i-1}), \qquad s_i = f([E y_{i-1}; c_i], s_{i-1}), \qquad t_i = \tanh(W [s_i; c_i;
    E y_{i-1}]) $$

    with $f$ = `cells`, $W$ = `readout` and $t$ what the output layer is given. Bahdanau et al. 2015, §3.1 and §A.2.2,
    with tanh for their maxout, as in Sennrich et al. 2017 (Nematus). With a reader that has no attention this is the
    encoder-decoder of Cho et al. 2014.
    """

    def __init__(
        self, words: Words, cells: Cells, reader: Reader, output: nn.Linear, *, summary: int, dropout: float = 0.0
    ) -> None:
        super().__init__(words, cells, reader, output, summary=summary, dropout=dropout)
        self.readout = dense(cells.hidden_size + reader.width + words.width, output.in_features)

    def go_on(self, word: Float[Tensor, "row width"], state: RecurrentState) -> Advanced[RecurrentState]:
        context, seen, weights, _ = self.reader.look(state.hidden.top, state.seen)
        hidden = step(self.cells, torch.cat([word, context], dim=-1), state.hidden)
        return Advanced(self.told(hidden.top, context, word), RecurrentState(hidden, seen), weights)

    def told(self, state: Tensor, context: Tensor, word: Tensor) -> Tensor:
        """What the output layer is given."""
        vector: Tensor = torch.tanh(self.readout(torch.cat([state, context, word], dim=-1)))
        return self.dropped(vector)

    def teach(
        self, tokens: Int[Tensor, "batch target"], encoded: Encoded, lengths: Int[Tensor, " batch"] | None = None
    ) -> Taught:
        words = self.words(tokens)
        if self.reader.blind:
            overview = self.reader.look_often(words, encoded)
            inputs = torch.cat([words, overview.contexts], dim=-1)
            states = run(self.cells, inputs, start=self.bridge(encoded.summary)).states
        else:
            states, overview = self.follow(words, encoded, Stretches.of(lengths, *words.shape[:2]))
        return Taught(self.told(states, overview.contexts, words), overview.weights, overview.draw)

    def follow(
        self, words: Float[Tensor, "batch target width"], encoded: Encoded, plan: Stretches
    ) -> tuple[Tensor, Overview]:
        """The states and contexts of all steps, one after another; what comes after them is done at once."""
        states, lengths, summary = (plan.sorted(part) for part in encoded[:3])
        content = None if encoded.content is None else plan.sorted(encoded.content)
        hidden, seen, _ = self.begin(Encoded(states, lengths, summary, content))
        words = plan.sorted(words)
        tops, contexts, weights, draws = [], [], [], []
        for start, stop, rows in plan.parts:
            hidden, seen = hidden.rows(slice(rows)), seen.first(rows)
            for word in words[:rows, start:stop].unbind(1):
                looked = self.reader.look(hidden.top, seen)
                hidden, seen = step(self.cells, torch.cat([word, looked.context], dim=-1), hidden), looked.seen
                tops.append(hidden.top)
                contexts.append(looked.context)
                weights.append(looked.weights)
                draws.append(looked.draw)
        overview = Overview(plan.together(contexts), plan.looked(weights), plan.drawn(draws))
        return plan.together(tops), overview


class Luong(RecurrentDecoder):
    r"""Takes a step first, then looks with its new state as the query.

    $$ h_t = f(E y_{t-1}, h_{t-1}), \qquad c_t = \mathrm{read}(h_t), \qquad \tilde h_t = \tanh(W_c [c_t; h_t]) $$

    with $f$ = `cells`, $W_c$ = `combine` and $\tilde h$ what the output layer is given. Luong et al. 2015, eq. 5. No
    step needs the context of the one before, so that all steps of a known target run at once.
    """

    def __init__(
        self, words: Words, cells: Cells, reader: Reader, output: nn.Linear, *, summary: int, dropout: float = 0.0
    ) -> None:
        super().__init__(words, cells, reader, output, summary=summary, dropout=dropout)
        self.combine = dense(reader.width + cells.hidden_size, output.in_features, bias=False)

    def go_on(self, word: Float[Tensor, "row width"], state: RecurrentState) -> Advanced[RecurrentState]:
        hidden = step(self.cells, word, state.hidden)
        context, seen, weights, _ = self.reader.look(hidden.top, state.seen)
        return Advanced(self.combined(context, hidden.top), RecurrentState(hidden, seen), weights)

    def combined(self, context: Tensor, state: Tensor) -> Tensor:
        """The attentional vector."""
        vector: Tensor = torch.tanh(self.combine(torch.cat([context, state], dim=-1)))
        return self.dropped(vector)

    def teach(
        self, tokens: Int[Tensor, "batch target"], encoded: Encoded, lengths: Int[Tensor, " batch"] | None = None
    ) -> Taught:
        states = run(self.cells, self.words(tokens), start=self.bridge(encoded.summary)).states
        if self.reader.parallel:
            overview = self.reader.look_often(states, encoded)
        else:
            overview = self.look_in_turn(states, encoded)
        return Taught(self.combined(overview.contexts, states), overview.weights, overview.draw)

    def look_in_turn(self, states: Float[Tensor, "batch target size"], encoded: Encoded) -> Overview:
        """One look after another, where each depends on those before."""
        seen, contexts, weights = self.reader.begin(encoded), [], []
        for state in states.unbind(1):
            looked = self.reader.look(state, seen)
            seen = looked.seen
            contexts.append(looked.context)
            weights.append(looked.weights)
        return Overview(torch.stack(contexts, dim=1), InTurn.of(weights))


class Feeding(Luong):
    r"""Luong's decoder that is told what it decided last: *input feeding*.

    $$ h_t = f([E y_{t-1}; \tilde h_{t-1}], h_{t-1}), \qquad \tilde h_0 = 0 $$

    Luong et al. 2015, §3.3. One step after another, because each needs the context of the one before.
    """

    def begin(self, encoded: Encoded) -> RecurrentState:
        nothing = encoded.states.new_zeros(encoded.states.shape[0], self.combine.out_features)
        return super().begin(encoded)._replace(fed=nothing)

    def go_on(self, word: Float[Tensor, "row width"], state: RecurrentState) -> Advanced[RecurrentState]:
        fed = word if state.fed is None else torch.cat([word, state.fed], dim=-1)
        taken = super().go_on(fed, state)
        return replace(taken, state=taken.state._replace(fed=taken.vector))

    def teach(
        self, tokens: Int[Tensor, "batch target"], encoded: Encoded, lengths: Int[Tensor, " batch"] | None = None
    ) -> Taught:
        state, vectors, weights = self.begin(encoded), [], []
        for word in self.words(tokens).unbind(1):
            taken = self.go_on(word, state)
            state = taken.state
            vectors.append(taken.vector)
            weights.append(taken.weights)
        return Taught(torch.stack(vectors, dim=1), InTurn.of(weights))
