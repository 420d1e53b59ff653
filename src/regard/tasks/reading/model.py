"""A model that points at the first and the last word of an answer."""

from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.catalog import Sizes
from regard.algebra.masks import Lengths
from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.dropout import dropout
from regard.layers.bidirectional import AttentionFlow, AttentionFlowOutput
from regard.layers.projections import build_linear
from regard.models.attention_builder import build_score
from regard.models.interface import mean_pool
from regard.models.recurrence import Cells, run_cells
from regard.tasks.data.batches import PaddedRows
from regard.tasks.reading.config import SpanReaderConfig

LOWEST = float("-inf")


class ReadingInputs(NamedTuple):
    """Passages and questions side by side, as word ids."""

    passage: PaddedRows
    question: PaddedRows

    def to(self, device: torch.device) -> "ReadingInputs":
        """Return the same on a device."""
        return self._replace(passage=self.passage.to(device), question=self.question.to(device))


class SpanScores(NamedTuple):
    """Scores of each passage word as the first and as the last of the answer, and the attention between both texts."""

    first: Float[Tensor, "batch passage"]
    last: Float[Tensor, "batch passage"]
    flow: AttentionFlowOutput | None


class Averages(nn.Module):
    r"""Attention flow without attention: averages in place of the contexts.

    $$ g_t = [h_t; \bar u; h_t \circ \bar u; h_t \circ \bar h] $$
    """

    def forward(self, passage: Tensor, asked: Tensor, passage_lengths: Tensor, asked_lengths: Tensor) -> Tensor:
        question, whole = mean_pool(asked, asked_lengths)[:, None], mean_pool(passage, passage_lengths)[:, None]
        return torch.cat([passage, question.expand_as(passage), passage * question, passage * whole], dim=-1)


class SpanReader(nn.Module):
    r"""Bidirectional attention flow.

    $$ h = \mathrm{cells}(x), \quad u = \mathrm{cells}(y), \quad g = \mathrm{flow}(h, u), \quad m = \mathrm{cells}'(g),
    \quad m' = \mathrm{cells}''(m) $$
    $$ p^1 = \mathrm{softmax}(w_1^\top [g; m]), \qquad p^2 = \mathrm{softmax}(w_2^\top [g; m']) $$

    with $x$ the words of the passage and $y$ those of the question. Seo et al. 2017, §2, without the layer of
    characters: what is not in the table of words has a vector by its spelling.
    """

    def __init__(self, config: SpanReaderConfig, table: nn.Embedding) -> None:
        super().__init__()
        self.table, self.dropout = table, config.dropout
        double = 2 * config.hidden
        self.words = build_cells(config, table.embedding_dim, 1)
        self.flow = build_flow(config, double)
        self.averages = Averages()
        self.modeling = build_cells(config, 4 * double, config.layers)
        self.ending = build_cells(config, double, 1)
        self.first, self.last = build_linear(5 * double, 1), build_linear(5 * double, 1)

    def forward(self, inputs: ReadingInputs) -> SpanScores:
        passage = self.encode_words(*inputs.passage)
        question = self.encode_words(*inputs.question)
        flow, both = self.combine(passage, question, inputs)
        modeled = run_cells(self.modeling, self.apply_dropout(both), inputs.passage.lengths).states
        ended = run_cells(self.ending, self.apply_dropout(modeled), inputs.passage.lengths).states
        real = torch.arange(passage.shape[1], device=passage.device) < inputs.passage.lengths[:, None]
        first, last = (
            linear(self.apply_dropout(torch.cat([both, states], dim=-1)))[..., 0].masked_fill(~real, LOWEST)
            for linear, states in ((self.first, modeled), (self.last, ended))
        )
        return SpanScores(first, last, flow)

    def encode_words(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Return the states of words in their context."""
        return run_cells(self.words, self.apply_dropout(self.table(ids)), lengths).states

    def combine(
        self, passage: Tensor, question: Tensor, inputs: ReadingInputs
    ) -> tuple[AttentionFlowOutput | None, Tensor]:
        """Return the attention flow, and the states of the passage beside what they attend to in the question."""
        if self.flow is None:
            both: Tensor = self.averages(passage, question, inputs.passage.lengths, inputs.question.lengths)
            return None, both
        masks = {"context_mask": Lengths(inputs.passage.lengths), "question_mask": Lengths(inputs.question.lengths)}
        flow = self.flow.attend(passage, question, **masks)
        asked, answered = flow.question.output, flow.context.output
        return flow, torch.cat([passage, asked, passage * asked, passage * answered], dim=-1)

    def apply_dropout(self, vectors: Tensor) -> Tensor:
        return dropout(vectors, self.dropout) if self.training else vectors


def build_flow(config: SpanReaderConfig, size: int) -> AttentionFlow | None:
    """Return the attention of the reader, if it has any."""
    if config.attention == "none":
        return None
    score = size if config.score == "trilinear" else build_score(config.score, Sizes(size, size, size))
    return AttentionFlow(score)


def build_cells(config: SpanReaderConfig, width: int, layers: int) -> Cells:
    """Build a bidirectional recurrent network."""
    kind = nn.GRU if config.cell == "gru" else nn.LSTM
    rate = config.dropout if layers > 1 else 0.0
    return kind(width, config.hidden, layers, bidirectional=True, dropout=rate)


def find_best_spans(
    pointed: SpanScores, longest: int
) -> tuple[Int[Tensor, " batch"], Int[Tensor, " batch"], Float[Tensor, " batch"]]:
    """Return first and last word of the most probable answer of at most `longest` words, and its log-probability."""
    first, last = pointed.first.log_softmax(-1), pointed.last.log_softmax(-1)
    pairs = first[:, :, None] + last[:, None, :]
    length = pairs.shape[-1]
    allowed = torch.ones(length, length, dtype=torch.bool, device=pairs.device).triu().tril(longest - 1)
    scores, place = pairs.masked_fill(~allowed, LOWEST).flatten(1).max(-1)
    return place // length, place % length, scores
