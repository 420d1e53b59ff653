"""Soft and hard attention to the regions of an image, behind a gate."""

import torch

from regard.algebra.aggregates import Aggregate, Argmax, Gumbel, Sample, Soft, StraightThroughGumbel
from regard.algebra.definition import weigh
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels import noise
from regard.compute.watchers import notify_watchers
from regard.layers.attention import Attention
from regard.layers.memory import Memory
from regard.layers.projections import build_linear
from regard.models.decoders.attention_checks import build_parts, check_single_head, check_source_attention, drop_weights
from regard.models.decoders.decoder_attention import (
    AttentionSequence,
    AttentionStep,
    DecoderAttention,
    DecoderAttentionState,
)
from regard.models.interface import AttentionSample, EncoderOutput, StoredAlignment
from regard.models.selection import SharedState

BEST = Argmax()


class RegionAttention(DecoderAttention):
    r"""The attention of *Show, Attend and Tell*: soft, or hard by any aggregate, behind a gate.

    $$ \hat z_t = \beta_t \sum_i \hat w_{ti} a_i, \qquad \beta_t = \sigma(f_\beta(s_{t-1})), \qquad \hat w_t =
    \mathrm{aggregate}(w_t) $$

    with $a$ = the regions, $w$ = the weights of `attention`, $f_\beta$ = `gate` (None: $\beta = 1$) and $s$ = the
    query. Xu et al. 2015, §4 and §4.2.1. In training a random `aggregate` draws a region; otherwise hard attention
    takes the best one. What was drawn, and from which weights, is part of the result: a loss needs both.

    >>> from regard.layers.projections import Projections
    >>> layer = RegionAttention(Attention(Projections()), query=3, width=3)
    >>> encoded = EncoderOutput(torch.ones(2, 5, 3), torch.tensor([5, 5]), torch.ones(2, 3))
    >>> layer.attend_step(torch.ones(2, 3), layer.begin(encoded)).weights.dense()[0]
    tensor([0.2000, 0.2000, 0.2000, 0.2000, 0.2000])
    """

    def __init__(
        self, attention: Attention, *, query: int, width: int, aggregate: Aggregate | None = None, gated: bool = True
    ) -> None:
        super().__init__()
        check_source_attention(attention)
        check_single_head(attention, "give it as `aggregate`")
        self.attention, self.width = attention, width
        self.aggregate = Soft() if aggregate is None else aggregate
        self.gate = build_linear(query, 1) if gated else None

    @property
    def is_hard(self) -> bool:
        """Whether it attends to one region."""
        return self.aggregate.form == "choice"

    def begin(self, encoded: EncoderOutput) -> DecoderAttentionState:
        memory = self.attention.remember(encoded.states, encoded.content, mask=encoded.mask)
        return DecoderAttentionState(SharedState(memory, encoded.states.shape[0]))

    def attend_step(self, query: Float[Tensor, "row size"], state: DecoderAttentionState) -> AttentionStep:
        contexts, weights, sample = self.attend_regions(state.source.fold(query), state.source.part)
        if sample is not None:
            sample = AttentionSample(*(None if part is None else part.flatten(0, 1) for part in sample))  # type: ignore[arg-type]
        later = state._replace(steps=state.steps + 1)
        return AttentionStep(contexts.flatten(0, 1), later, StoredAlignment(weights.flatten(0, 1)), sample)

    def attend_all(self, queries: Float[Tensor, "batch target size"], encoded: EncoderOutput) -> AttentionSequence:
        contexts, weights, sample = self.attend_regions(queries, self.begin(encoded).source.part)
        return AttentionSequence(contexts, StoredAlignment(weights), sample)

    def attend_regions(
        self, queries: Float[Tensor, "batch query size"], memory: Memory
    ) -> tuple[Float[Tensor, "batch query width"], Float[Tensor, "batch query source"], AttentionSample | None]:
        """Return contexts and weights, and what hard attention sampled them from."""
        pairs = Pairs(queries.shape[1], memory.length, device=queries.device)
        projected = self.attention.projections.project_queries(queries)
        parts = build_parts(self.attention, projected, memory)
        # Regions are few: their table is cheap, and losses need the weights before the aggregate.
        soft = weigh(parts, parts.score.stream, projected, memory.key, pairs, seed=None).weights
        aggregate = self.aggregate if self.training or not self.is_hard else BEST
        weights, log_prob = aggregate(soft, pairs, noise.draw_seed(queries.device) if aggregate.random else None)
        notify_watchers(
            weights, AttentionCall(parts._replace(aggregate=aggregate), projected, memory.key, memory.value)
        )
        contexts = self.attention.projections.merge(drop_weights(self.attention, weights, pairs) @ memory.value)
        if self.gate is not None:
            contexts = contexts * torch.sigmoid(self.gate(queries))
        sample = AttentionSample(soft[:, 0], None if log_prob is None else log_prob[:, 0]) if self.is_hard else None
        return contexts, weights[:, 0], sample


# The aggregate of each training method.
AGGREGATES: dict[str, type[Aggregate]] = {
    "soft": Soft,
    "reinforce": Sample,
    "gumbel": Gumbel,
    "gumbel-straight": StraightThroughGumbel,
    "straight-through": Argmax,
}
