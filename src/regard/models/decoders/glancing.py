"""Readers that choose: all of the source softly, or one place of it, drawn or the best, and how much of it counts."""

import torch

from regard.algebra.aggregates import Argmax, Gumbel, GumbelStraight, Reading, Sample, Soft
from regard.algebra.definition import weigh
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels import noise
from regard.compute.watching import tell
from regard.layers.attention import Attention
from regard.layers.memory import Memory
from regard.layers.projections import dense
from regard.models.decoders.parts import check_alone, check_source, drop_weights, parts_of
from regard.models.decoders.reading import Looked, Overview, Reader, Seen
from regard.models.interface import Draw, Encoded, Written
from regard.models.selecting import Shared

BEST = Argmax()


class Glancing(Reader):
    r"""The attention of *Show, Attend and Tell*: soft, or hard by any reading, behind a gate.

    $$ \hat z_t = \beta_t \sum_i \hat w_{ti} a_i, \qquad \beta_t = \sigma(f_\beta(s_{t-1})), \qquad \hat w_t =
    \mathrm{reading}(w_t) $$

    with $a$ = the regions, $w$ = the weights of `attention`, $f_\beta$ = `gate` (None: $\beta = 1$) and $s$ = the
    query. Xu et al. 2015, §4 and §4.2.1. While it trains, a random `reading` draws; otherwise hard attention looks at
    the best region. What was drawn, and from what, is given back with the look: a loss needs both.

    >>> from regard.layers.projections import Projections
    >>> reader = Glancing(Attention(Projections()), query=3, width=3)
    >>> encoded = Encoded(torch.ones(2, 5, 3), torch.tensor([5, 5]), torch.ones(2, 3))
    >>> reader.look(torch.ones(2, 3), reader.begin(encoded)).weights.dense()[0]
    tensor([0.2000, 0.2000, 0.2000, 0.2000, 0.2000])
    """

    def __init__(
        self, attention: Attention, *, query: int, width: int, reading: Reading | None = None, gated: bool = True
    ) -> None:
        super().__init__()
        check_source(attention)
        check_alone(attention, "give it as `reading`")
        self.attention, self.width = attention, width
        self.reading = Soft() if reading is None else reading
        self.gate = dense(query, 1) if gated else None

    @property
    def hard(self) -> bool:
        """Whether it looks at one place."""
        return self.reading.form == "choice"

    def begin(self, encoded: Encoded) -> Seen:
        memory = self.attention.remember(encoded.states, encoded.content, mask=encoded.mask)
        return Seen(Shared(memory, encoded.states.shape[0]))

    def look(self, query: Float[Tensor, "row size"], seen: Seen) -> Looked:
        contexts, weights, draw = self.glance(seen.source.fold(query), seen.source.part)
        if draw is not None:
            draw = Draw(draw.odds.flatten(0, 1), None if draw.log_prob is None else draw.log_prob.flatten(0, 1))
        later = seen._replace(steps=seen.steps + 1)
        return Looked(contexts.flatten(0, 1), later, Written(weights.flatten(0, 1)), draw)

    def look_often(self, queries: Float[Tensor, "batch target size"], encoded: Encoded) -> Overview:
        contexts, weights, draw = self.glance(queries, self.begin(encoded).source.part)
        return Overview(contexts, Written(weights), draw)

    def glance(
        self, queries: Float[Tensor, "batch query size"], memory: Memory
    ) -> tuple[Float[Tensor, "batch query width"], Float[Tensor, "batch query source"], Draw | None]:
        """What queries see, the weights that they see it with, and how those were chosen."""
        pairs = Pairs(queries.shape[1], memory.length, device=queries.device)
        odds = self.odds(queries, memory, pairs)
        reading = self.reading if self.training or not self.hard else BEST
        weights, log_prob = reading(odds, pairs, noise.draw_seed(queries.device) if reading.random else None)
        tell(weights)
        contexts = self.attention.projections.merge(drop_weights(self.attention, weights, pairs) @ memory.value)
        if self.gate is not None:
            contexts = contexts * torch.sigmoid(self.gate(queries))
        draw = Draw(odds[:, 0], None if log_prob is None else log_prob[:, 0]) if self.hard else None
        return contexts, weights[:, 0], draw

    def odds(self, queries: Tensor, memory: Memory, pairs: Pairs) -> Float[Tensor, "batch 1 query source"]:
        """The weights before anything is chosen. Regions are few: a table of them is cheap, and losses want it."""
        asked = self.attention.projections.queries(queries)
        parts = parts_of(self.attention, asked, memory)
        return weigh(parts, parts.score.stream, asked, memory.key, pairs, seed=None).weights


# What a reader can do with its weights, by the name of the way it learns.
READINGS: dict[str, type[Reading]] = {
    "soft": Soft,
    "reinforce": Sample,
    "gumbel": Gumbel,
    "gumbel-straight": GumbelStraight,
    "straight-through": Argmax,
}
