r"""Gated heads with a memory: several glimpses at a sequence, and a gate for what is kept of each.

The mechanism is that of a Chinese article on attention in PyTorch, whose formulas, prose and code contradict one
another. This is the version that trains. What was chosen, and against what:

1. Weights. The formulas take a softmax, prose and code a sigmoid. Here the softmax weighs positions and the sigmoid
   gates the values there ("gate, then multiply by the input").
2. Axis. $\alpha^i_j$ runs over the hidden units j, "the weight of each position" over positions. Here over positions.
3. Heads. $F$ is $T \times n_h$ with $n_h$ hidden units, but there are K heads. Here $F$ has a row for each head.
4. Terms. The first formula of $F$ adds input, mean and previous output inside one tanh; the second multiplies three
   scores (⊗) and stops at $x_{T / n_h}$. Here the first: it is additive attention.
5. Offset. $\theta$ is indexed by head and unit, by unit, and by term, and called a bias of position. Here by head and
   position.
6. Context. $R = \sum_k A^i (\mathrm{softmax}(H) + b_r)$ sums over k what has an index i, and averages a softmax of
   the features. Here each head averages gated inputs, and the heads stay apart.
7. Update. $U_t$ is a vector, then a matrix in $y_t = g(c_o + U x_t)$. Here the vector, through a matrix of the output.
8. Pool. $K \times T \times n_h$ in the prose, one vector in the code. Here a vector for each head.
9. Selection. In the prose a probability from input and previous output; in the code the weights of the step before,
   indexed by the width of the memory. Here the former, one for each head.
10. Code. `view(batch, length)` of heads that are `width / heads` wide; `reshape(-1, width)`, which mixes the samples;
    `prev_state=(None, None)`, which is not None; a classifier fed with pictures that were never flattened; and a loss
    that never sees the attention. None of it is kept.
"""

import math
from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.masks import Mask
from regard.algebra.normalizers import Softmax
from regard.algebra.scores import Additive
from regard.algebra.scores.additive import init_uniform
from regard.algebra.shapes import Float, Tensor
from regard.compute.attend import AttentionResult
from regard.errors import wrong
from regard.layers.mechanism import Mechanism
from regard.layers.memory import FULL, Memory, zero_padding
from regard.layers.projections import build_linear, split_heads


class GatedState(NamedTuple):
    """The state after a glimpse: what each head has kept, and the output so far."""

    memory: Float[Tensor, "batch heads size"]
    output: Float[Tensor, "batch hidden"]


class GatedSource(NamedTuple):
    """A sequence, projected once for all glimpses: its keys and values, and what its mean adds to each query."""

    memory: Memory
    mean: Float[Tensor, "batch heads 1 hidden"]


class Glimpse(NamedTuple):
    """One glimpse: the attention of each head, its gate, and the state after it."""

    attended: AttentionResult
    gate: Float[Tensor, "batch heads"]
    state: GatedState


class GatedHeadsOutput(NamedTuple):
    """The answer after all glimpses, and the weights and gates of each head and step."""

    output: Float[Tensor, "batch out"]
    glimpses: tuple[Glimpse, ...]

    @property
    def state(self) -> GatedState:
        """The state after the last glimpse."""
        return self.glimpses[-1].state

    @property
    def weights(self) -> Float[Tensor, "batch steps heads key"]:
        """The weights of each head at each step, computed when they are needed."""
        return torch.stack([glimpse.attended.weights.dense().squeeze(-2) for glimpse in self.glimpses], dim=1)

    @property
    def gates(self) -> Float[Tensor, "batch steps heads"]:
        """The gates of each head at each step."""
        return torch.stack([glimpse.gate for glimpse in self.glimpses], dim=1)


class GatedHeads(nn.Module):
    r"""Heads that attend several times and keep what a gate lets through.

    $$ f_{ki} = \mathrm{softmax}_i\left(\frac{q_k^\top \tanh(W_k x_i + W'_k \bar x + W''_k y_{t-1} + \theta_{ki})}
    {\sqrt d}\right), \qquad a_k = \sum_i f_{ki}\, \sigma(G_k x_i + b_k) \circ x_i $$
    $$ p_k = \sigma(s_k^\top [a_k; y_{t-1}] + c_k), \qquad m_k \leftarrow m_k + p_k a_k $$
    $$ u = \tanh(W_m [m_1; \dots; m_K] + W_h y_{t-1} + b), \qquad y_t = \sigma(W_o u + c_o) $$

    with $W$ = `inputs`, $W'$ = `mean`, $W''$ = `previous`, $\theta$ = `offset` for at most `positions` positions, $q$
    in the mechanism's score, $G$ = `value_gate`, $s$ = `select`, $c$ = `shift`, $W_m$ and $W_h$ = `update`, $W_o$ =
    `squash`, $d$ = `hidden`. The answer is a last matrix times $y$ after `steps` glimpses. The first state is zeros.

    >>> layer = GatedHeads(28, 10, heads=4, hidden=32, positions=28)
    >>> gated = layer(torch.randn(2, 28, 28))
    >>> gated.output.shape, gated.weights.shape
    (torch.Size([2, 10]), torch.Size([2, 3, 4, 28]))
    """

    def __init__(
        self,
        size: int,
        out: int,
        *,
        heads: int = 4,
        hidden: int = 64,
        positions: int,
        steps: int = 3,
        mechanism: Mechanism | None = None,
    ) -> None:
        super().__init__()
        if steps < 1:
            raise wrong("steps", steps, "at least 1", "count the glimpses")
        self.size, self.heads, self.hidden, self.steps = size, heads, hidden, steps
        self.inputs = build_linear(size, heads * hidden, bias=False)
        self.mean = build_linear(size, heads * hidden, bias=False)
        self.previous = build_linear(hidden, heads * hidden, bias=False)
        self.offset = nn.Parameter(torch.empty(heads, positions, hidden).normal_(std=0.1))
        self.value_gate = build_linear(size, heads * size)
        self.select, self.shift = init_uniform(heads, size + hidden), nn.Parameter(torch.zeros(heads))
        self.update = build_linear(heads * size + hidden, hidden)
        self.squash = build_linear(hidden, hidden)
        self.answer = build_linear(hidden, out)
        score, flat = Additive.projected(hidden, heads=heads), Softmax(temperature=math.sqrt(hidden))
        self.mechanism = Mechanism(score, normalizer=flat) if mechanism is None else mechanism

    def begin(self, source: GatedSource) -> GatedState:
        """Return the state before the first glimpse: zeros."""
        batch = source.mean.shape[0]
        new = source.mean.new_zeros
        return GatedState(new(batch, self.heads, self.size), new(batch, self.hidden))

    def remember(self, source: Float[Tensor, "batch key size"], *, mask: Mask = FULL) -> GatedSource:
        """Return keys and gated values of each head; the mean is over positions that are not padding."""
        source = zero_padding(source, mask)
        length, most = source.shape[-2], self.offset.shape[-2]
        if length > most:
            fix = f"build the layer with positions={length}"
            raise wrong("source", f"{length} positions", f"at most positions={most}", fix)
        key = split_heads(self.inputs(source), self.heads) + self.offset[:, :length]
        value = torch.sigmoid(split_heads(self.value_gate(source), self.heads)) * source[:, None]
        real = mask.table(1, length, device=source.device).sum((-1, -2)).clamp_min(1)
        mean = self.mean(source.sum(-2, keepdim=True) / real[..., None, None])
        return GatedSource(Memory(key, value, mask), split_heads(mean, self.heads))

    def compute_gate(self, features: Float[Tensor, "batch heads both"]) -> Float[Tensor, "batch heads"]:
        """Return how much of each head's context is kept, from the context and the output so far."""
        return torch.sigmoid((features * self.select).sum(-1) + self.shift)

    def keep(
        self, kept: Float[Tensor, "batch heads size"], context: Float[Tensor, "batch heads size"]
    ) -> Float[Tensor, "batch heads size"]:
        """Return what each head has kept after a glimpse."""
        return kept + context

    def step(self, source: GatedSource, state: GatedState) -> Glimpse:
        """Take one glimpse."""
        memory, (kept, previous) = source.memory, state
        query = source.mean + split_heads(self.previous(previous)[:, None], self.heads)
        attended = self.mechanism.attend(query, memory.key, memory.value, mask=memory.mask.add_head_axis())
        context = attended.output.squeeze(-2)
        features = torch.cat([context, previous[:, None].expand(-1, self.heads, -1)], dim=-1)
        gate = self.compute_gate(features)
        kept = self.keep(kept, gate[..., None] * context)
        update = torch.tanh(self.update(torch.cat([kept.flatten(1), previous], dim=-1)))
        return Glimpse(attended, gate, GatedState(kept, torch.sigmoid(self.squash(update))))

    def forward(
        self, source: Float[Tensor, "batch key size"], *, mask: Mask = FULL, state: GatedState | None = None
    ) -> GatedHeadsOutput:
        ready = self.remember(source, mask=mask)
        state = self.begin(ready) if state is None else state
        glimpses: list[Glimpse] = []
        for _ in range(self.steps):
            glimpses.append(self.step(ready, state))
            state = glimpses[-1].state
        return GatedHeadsOutput(self.answer(state.output), tuple(glimpses))
