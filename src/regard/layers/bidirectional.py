"""Two sequences that attend to each other: BiDAF and co-attention."""

from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.masks import Mask, Table
from regard.algebra.scores import Dot, DotForm, DotScore, Score
from regard.algebra.scores.additive import init_uniform
from regard.algebra.shapes import Bool, Float, Keys, Queries, Scores, Tensor
from regard.compute.attend import AttentionResult, attend
from regard.layers.mechanism import Mechanism
from regard.layers.memory import FULL, combine_masks, zero_padding
from regard.layers.projections import build_linear

LOWEST = float("-inf")
DOT = Dot()

Context = Float[Tensor, "*lead context size"]
Question = Float[Tensor, "*lead question size"]


class Trilinear(DotScore):
    r"""A weight for each coordinate of query, key and their product.

    $$ s_{ij} = w^\top [q_i; k_j; q_i \circ k_j] $$

    with $w$ = `weight`, in three parts. Seo et al. 2017, §2 (attention flow layer).

    Lowers to: a dot product with $q' = w_3 \circ q$, a row $w_1^\top q$ and a column $w_2^\top k$.

    >>> Trilinear(3)(torch.ones(5, 3), torch.ones(7, 3)).shape
    torch.Size([5, 7])
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = init_uniform(3, size)

    def forward(self, query: Queries, key: Keys) -> Scores:
        left, right = query[..., :, None, :], key[..., None, :, :]
        near, far = torch.broadcast_tensors(left, right)
        return torch.cat([near, far, left * right], dim=-1) @ self.weight.flatten()

    def dot_form(self, query: Queries, key: Keys) -> DotForm:
        near, far, product = self.weight
        return DotForm(query * product, key, row=query @ near, column=key @ far)


class AttentionFlowOutput(NamedTuple):
    """Attention of each context word to the question, and attention to the context by its best matching words."""

    question: AttentionResult
    context: AttentionResult


class AttentionFlow(nn.Module):
    r"""A context and a question that attend to each other (BiDAF).

    $$ S_{tj} = \alpha(h_t, u_j), \quad \tilde u_t = \sum_j \mathrm{softmax}(S_t)_j u_j, \quad
    \tilde h = \sum_t \mathrm{softmax}(\max_j S_{tj})_t h_t $$
    $$ g_t = [h_t; \tilde u_t; h_t \circ \tilde u_t; h_t \circ \tilde h] $$

    with $h$ = `context`, $u$ = `question` and $\alpha$ = `score`, trilinear if a size is given. Seo et al. 2017,
    eq. 1-2. Padding of the context gives zeros; an empty question gives $\tilde u = \tilde h = 0$.

    >>> AttentionFlow(3)(torch.ones(2, 7, 3), torch.ones(2, 5, 3)).shape
    torch.Size([2, 7, 12])
    """

    def __init__(self, score: int | Score) -> None:
        super().__init__()
        self.score = score if isinstance(score, Score) else Trilinear(score)

    def attend(
        self, context: Context, question: Question, *, context_mask: Mask = FULL, question_mask: Mask = FULL
    ) -> AttentionFlowOutput:
        """Attend from context to question, and to the context by the best match of each of its words."""
        context, question = zero_padding(context, context_mask), zero_padding(question, question_mask)
        asked = attend(context, question, question, score=self.score, mask=question_mask)
        scores = self.score.stream(context, question)
        valid = find_valid_positions(question, question_mask)
        peak = scores.masked_fill(~valid[..., None, :], LOWEST).amax(-1)
        some = valid.any(-1)[..., None]
        answered = attend(
            context.new_ones(1, 1),
            torch.where(some, peak, 0.0)[..., None],
            context,
            score=DOT,
            mask=combine_masks(context_mask, Table(some[..., None])),
        )
        return AttentionFlowOutput(asked, answered)

    def forward(
        self, context: Context, question: Question, *, context_mask: Mask = FULL, question_mask: Mask = FULL
    ) -> Float[Tensor, "*lead context four"]:
        flow = self.attend(context, question, context_mask=context_mask, question_mask=question_mask)
        own, asked, answered = zero_padding(context, context_mask), flow.question.output, flow.context.output
        return zero_padding(torch.cat([own, asked, own * asked, own * answered], dim=-1), context_mask)


class CoAttentionOutput(NamedTuple):
    """The attention to each side: output `(*lead, 1, width)`, weights `(*lead, 1, length)`."""

    first: AttentionResult
    second: AttentionResult


class CoAttention(nn.Module):
    r"""Two sequences, such as image regions and words, each of which weighs the positions of the other.

    $$ C = \tanh(Q W_b V^\top), \quad H^v = \tanh(V W_v + C^\top (Q W_q)), \quad H^q = \tanh(Q W_q + C (V W_v)) $$
    $$ a^v = \mathrm{softmax}(H^v w_v), \quad a^q = \mathrm{softmax}(H^q w_q), \quad
    \hat v = \sum_n a^v_n v_n, \quad \hat q = \sum_t a^q_t q_t $$

    with $V$ = `first`, $Q$ = `second` (rows are positions), $W_b$ = `affinity`, $W_v, W_q$ = `projections` and
    $w_v, w_q$ = `queries`. Lu et al. 2016, eq. 3-5 (*parallel co-attention*). Padding on either side is ignored;
    an empty side gives zeros.

    >>> flow = CoAttention(3, 5, hidden=11)(torch.ones(2, 7, 3), torch.ones(2, 13, 5))
    >>> flow.first.output.shape, flow.second.output.shape
    (torch.Size([2, 1, 3]), torch.Size([2, 1, 5]))
    """

    def __init__(self, first: int, second: int, *, hidden: int, mechanism: Mechanism | None = None) -> None:
        super().__init__()
        self.affinity = build_linear(first, second, bias=False)
        self.projections = nn.ModuleList(
            [build_linear(first, hidden, bias=False), build_linear(second, hidden, bias=False)]
        )
        self.queries = init_uniform(2, hidden)
        self.mechanism = Mechanism(Dot()) if mechanism is None else mechanism

    def forward(
        self,
        first: Float[Tensor, "*lead first width"],
        second: Float[Tensor, "*lead second other"],
        *,
        first_mask: Mask = FULL,
        second_mask: Mask = FULL,
    ) -> CoAttentionOutput:
        first, second = zero_padding(first, first_mask), zero_padding(second, second_mask)
        affinity = torch.tanh(second @ self.affinity(first).transpose(-1, -2))
        # tanh(0) = 0, and there is no bias: padding, which is zero now, changes nothing.
        left, right = self.projections[0](first), self.projections[1](second)
        seen = torch.tanh(left + affinity.transpose(-1, -2) @ right), torch.tanh(right + affinity @ left)
        return CoAttentionOutput(
            self.mechanism.attend(self.queries[:1], seen[0], first, mask=first_mask),
            self.mechanism.attend(self.queries[1:], seen[1], second, mask=second_mask),
        )


def find_valid_positions(source: Float[Tensor, "*lead key width"], mask: Mask) -> Bool[Tensor, "*#lead key"]:
    """Return which positions are not padding."""
    return mask.table(1, source.shape[-2], device=source.device).squeeze(-2)
