"""Models that answer a question about an image: three ways for the words to attend to the regions, and one without."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.catalog import Sizes
from regard.algebra.masks import Lengths
from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.dropout import dropout
from regard.layers import Attention, CoAttention
from regard.layers.blocks import EncoderBlock, FeedForward, PreNorm
from regard.layers.positions import LearnedPositions
from regard.layers.projections import Projections, build_linear
from regard.models.encoders.grid import GridEncoder, SmallNetwork
from regard.models.recurrence import run_cells
from regard.tasks.mechanisms import build_catalog_mechanism
from regard.tasks.vqa.config import AnswererConfig


class VqaBatch(NamedTuple):
    """Images once each, questions as word ids, the image that each asks about, and the answers."""

    images: Float[Tensor, "image 3 height width"]
    questions: Int[Tensor, "question longest"]
    lengths: Int[Tensor, " question"]
    image_indices: Int[Tensor, " question"]
    answers: Int[Tensor, " question"]


class VqaOutput(NamedTuple):
    """Scores of the answers, and the weights of each attention step of each question."""

    scores: Float[Tensor, "question answer"]
    weights: Float[Tensor, "question look region"]


class VqaEncoding(NamedTuple):
    """Regions of each question's image, the question's words, its lengths and its summary."""

    regions: Float[Tensor, "question region size"]
    words: Float[Tensor, "question longest size"]
    lengths: Int[Tensor, " question"]
    summary: Float[Tensor, "question size"]


class VqaAttention(nn.Module, ABC):
    """Combines regions and words to one vector."""

    @abstractmethod
    def forward(
        self, encoding: VqaEncoding
    ) -> tuple[Float[Tensor, "question size"], Float[Tensor, "question look region"]]: ...


class StackedAttention(VqaAttention):
    r"""Attends several times, each time with the context so far added to the query: *stacked attention*.

    $$ p^k = \mathrm{softmax}(w^\top \tanh(W_I^k v + W_Q^k u^{k-1})), \qquad u^k = \sum_i p^k_i v_i + u^{k-1} $$

    with $v$ = the regions and $u^0$ = the question. Yang et al. 2016, eq. 15-18.
    """

    def __init__(self, config: AnswererConfig) -> None:
        super().__init__()
        sizes = Sizes(config.size, config.size, config.size)
        mechanisms = [
            build_catalog_mechanism(config.score or "additive", sizes, config.normalizer) for _ in range(config.hops)
        ]
        self.hops = nn.ModuleList([Attention(Projections(), mechanism=mechanism) for mechanism in mechanisms])

    def forward(self, encoding: VqaEncoding) -> tuple[Tensor, Tensor]:
        found, looks = encoding.summary[:, None], []
        for hop in self.hops:
            attended = hop.attend(found, hop.remember(encoding.regions))  # type: ignore[operator]
            found = found + attended.output
            looks.append(attended.weights.dense().mean(-3))
        return found[:, 0], torch.cat(looks, dim=1)


class ParallelCoAttention(VqaAttention):
    r"""Regions and words weigh the positions of each other: *parallel co-attention*. Lu et al. 2016, eq. 3-5.

    The answer is read from $\tanh(W (\hat v + \hat q))$, the last level of their eq. 7.
    """

    def __init__(self, config: AnswererConfig) -> None:
        super().__init__()
        size = config.size
        mechanism = build_catalog_mechanism(config.score or "dot", Sizes(size, size, size), config.normalizer)
        self.look, self.join = CoAttention(size, size, hidden=size, mechanism=mechanism), build_linear(size, size)

    def forward(self, encoding: VqaEncoding) -> tuple[Tensor, Tensor]:
        both = self.look(encoding.regions, encoding.words, second_mask=Lengths(encoding.lengths))
        found = torch.tanh(self.join(both.first.output[:, 0] + both.second.output[:, 0]))
        return found, both.first.weights.dense().reshape(len(found), 1, -1)


class CrossModalTransformer(VqaAttention):
    """Words attend to the regions with several heads, then to one another, layer by layer: a cross-modal Transformer.

    Tan & Bansal 2019 (LXMERT), §2.2, the language side. The answer is read from the mean of the words.
    """

    def __init__(self, config: AnswererConfig) -> None:
        super().__init__()
        size, heads = config.size, config.heads
        each = Sizes(size // heads, size // heads, size // heads, lead=(heads,))
        score = config.score or "scaled-dot"
        self.positions = LearnedPositions(64, size)
        self.look = nn.ModuleList(
            [
                Attention(
                    Projections.linear(size, heads=heads, source=size),
                    mechanism=build_catalog_mechanism(score, each, config.normalizer),
                )
                for _ in range(config.hops)
            ]
        )
        self.around = nn.ModuleList([PreNorm(size, dropout=config.dropout) for _ in range(config.hops)])
        self.blocks = nn.ModuleList([self.build_block(config) for _ in range(config.hops)])

    @staticmethod
    def build_block(config: AnswererConfig) -> EncoderBlock:
        """Build the self-attention and feed-forward of one layer."""
        forward = FeedForward(config.size, 2 * config.size, dropout=config.dropout)
        own = Attention(config.size, heads=config.heads)
        return EncoderBlock(config.size, attention=own, feed_forward=forward, dropout=config.dropout)

    def forward(self, encoding: VqaEncoding) -> tuple[Tensor, Tensor]:
        real = Lengths(encoding.lengths)
        inside = real.table(1, encoding.words.shape[1], device=encoding.words.device).squeeze(-2)[..., None]
        share = inside / encoding.lengths[:, None, None]
        stream, looks = self.positions(encoding.words), []
        for look, around, block in zip(self.look, self.around, self.blocks, strict=True):
            attended = look.attend(around.prepare(stream), look.remember(encoding.regions))  # type: ignore[operator]
            looks.append((attended.weights.dense().mean(-3) * share).sum(1))
            stream = block(around.combine(stream, attended.output), real=real)  # type: ignore[operator]
        return (stream * share).sum(1), torch.stack(looks, dim=1)


class RegionMean(VqaAttention):
    """Has no attention: it takes the mean of the regions beside the question."""

    def forward(self, encoding: VqaEncoding) -> tuple[Tensor, Tensor]:
        weights = encoding.regions.new_full(
            (len(encoding.regions), 1, encoding.regions.shape[1]), 1 / encoding.regions.shape[1]
        )
        return encoding.regions.mean(1) + encoding.summary, weights


ATTENTION_KINDS: dict[str, Callable[[AnswererConfig], VqaAttention]] = {
    "stacked": StackedAttention,
    "co-attention": ParallelCoAttention,
    "transformer": CrossModalTransformer,
}


class Answerer(nn.Module):
    """Encodes image and question, attends, and selects one of the answers that it knows.

    What was found is compared with the question by their product (Antol et al. 2015, §4): whether both agree is what
    yes and no depend on.
    """

    def __init__(self, config: AnswererConfig, *, regions: int, words: int, answers: int) -> None:
        super().__init__()
        size = config.size
        network = SmallNetwork(config.channels)
        self.eye = GridEncoder(network, channels=config.channels[-1], width=size, regions=regions)
        self.table, self.cells = nn.Embedding(words, size), nn.GRU(size, size)
        self.looker: VqaAttention = RegionMean() if config.kind == "none" else ATTENTION_KINDS[config.kind](config)
        self.widen, self.answer = build_linear(2 * size, 2 * size), build_linear(2 * size, answers)
        self.dropout = config.dropout

    def forward(self, batch: VqaBatch) -> VqaOutput:
        lengths = torch.full((len(batch.images),), self.eye.regions, device=batch.images.device)
        seen = self.eye(batch.images, lengths).states
        heard = run_cells(self.cells, self.table(batch.questions), batch.lengths)
        found, looks = self.looker(VqaEncoding(seen[batch.image_indices], heard.states, batch.lengths, heard.last))
        hidden = torch.relu(self.widen(torch.cat([found, found * heard.last], dim=-1)))
        return VqaOutput(self.answer(dropout(hidden, self.dropout) if self.training else hidden), looks)
