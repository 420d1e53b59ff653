"""BiDAF's attention flow and co-attention, against their formulas."""

import pytest
import torch
from torch import Tensor

from regard.algebra.masks import Lengths
from regard.algebra.scores import Dot
from regard.layers import AttentionFlow, CoAttention, Trilinear

B, T, J, D, E, K = 2, 7, 5, 11, 13, 17


def attend_in_loops(weight: Tensor, context: Tensor, question: Tensor) -> Tensor:
    """Seo et al. 2017, eq. 1-2, a word at a time."""
    similar = torch.stack([torch.stack([weight @ torch.cat([h, u, h * u]) for u in question]) for h in context])
    peaks = similar.amax(1).softmax(0)
    summary = sum(peaks[t] * context[t] for t in range(len(context)))
    rows = []
    for t, h in enumerate(context):
        asked = sum(similar[t].softmax(0)[j] * question[j] for j in range(len(question)))
        rows.append(torch.cat([h, asked, h * asked, h * summary]))
    return torch.stack(rows)


def test_flow_is_the_formula() -> None:
    layer = AttentionFlow(D).double()
    assert isinstance(layer.score, Trilinear)
    context, question = torch.randn(B, T, D).double(), torch.randn(B, J, D).double()
    output = layer(context, question)
    for b in range(B):
        expected = attend_in_loops(layer.score.weight.flatten(), context[b], question[b])
        torch.testing.assert_close(output[b], expected)


def test_trilinear_has_its_dot_form() -> None:
    score = Trilinear(D).double()
    query, key = torch.randn(B, T, D).double(), torch.randn(B, J, D).double()
    torch.testing.assert_close(score.dot_form(query, key).compute_scores(), score(query, key))
    torch.testing.assert_close(
        score(query, key)[1, 2, 3],
        score.weight.flatten() @ torch.cat([query[1, 2], key[1, 3], query[1, 2] * key[1, 3]]),
    )


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_flow_knows_padding_on_both_sides(poison: float) -> None:
    layer = AttentionFlow(D).double()
    context, question = torch.randn(B, T, D).double(), torch.randn(B, J, D).double()
    context[0, 4:], question[0, 3:] = poison, poison
    masks = {"context_mask": Lengths(torch.tensor([4, T])), "question_mask": Lengths(torch.tensor([3, J]))}
    output = layer(context, question, **masks)
    torch.testing.assert_close(output[0, :4], layer(context[:1, :4], question[:1, :3])[0])
    torch.testing.assert_close(output[1], layer(context[1:], question[1:])[0])
    assert torch.equal(output[0, 4:], torch.zeros(T - 4, 4 * D).double())
    output.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


def test_an_empty_side_flows_zero() -> None:
    layer = AttentionFlow(D).double()
    context, question = torch.randn(B, T, D).double(), torch.randn(B, J, D).double()
    flow = layer.attend(context, question, question_mask=Lengths(torch.tensor([0, J])))
    assert torch.equal(flow.question.output[0], torch.zeros(T, D).double())
    assert torch.equal(flow.context.output[0], torch.zeros(1, D).double())
    assert torch.equal(flow.context.weights.dense()[0], torch.zeros(1, T).double())
    output = layer(context, question, context_mask=Lengths(torch.tensor([0, T])))
    assert torch.equal(output[0], torch.zeros(T, 4 * D).double())
    (output.sum() + flow.context.output.sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


def test_flow_takes_any_score() -> None:
    context, question = torch.randn(B, T, D).double(), torch.randn(B, J, D).double()
    flow = AttentionFlow(Dot()).attend(context, question)
    similar = context @ question.transpose(1, 2)
    torch.testing.assert_close(flow.question.output, similar.softmax(-1) @ question)
    torch.testing.assert_close(flow.context.weights.dense()[:, 0], similar.amax(-1).softmax(-1))


def test_coattention_is_the_formula() -> None:
    """Lu et al. 2016, eq. 3-5, with the columns of the paper as rows."""
    layer = CoAttention(D, E, hidden=K).double()
    image, words = torch.randn(B, T, D).double(), torch.randn(B, J, E).double()
    both = layer(image, words)
    left, right = (projection.weight for projection in layer.projections)
    for b in range(B):
        V, Q = image[b].T, words[b].T
        C = torch.tanh(Q.T @ layer.affinity.weight @ V)
        seen = torch.tanh(left @ V + (right @ Q) @ C)
        read = torch.tanh(right @ Q + (left @ V) @ C.T)
        places, terms = (layer.queries[0] @ seen).softmax(0), (layer.queries[1] @ read).softmax(0)
        torch.testing.assert_close(both.first.output[b, 0], V @ places)
        torch.testing.assert_close(both.second.output[b, 0], Q @ terms)
        torch.testing.assert_close(both.first.weights.dense()[b, 0], places)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_coattention_knows_padding_on_both_sides(poison: float) -> None:
    layer = CoAttention(D, E, hidden=K).double()
    image, words = torch.randn(B, T, D).double(), torch.randn(B, J, E).double()
    image[0, 4:], words[0, 3:], words[1] = poison, poison, poison
    masks = {"first_mask": Lengths(torch.tensor([4, T])), "second_mask": Lengths(torch.tensor([3, 0]))}
    both = layer(image, words, **masks)
    short = layer(image[:1, :4], words[:1, :3])
    torch.testing.assert_close(both.first.output[:1], short.first.output)
    torch.testing.assert_close(both.second.output[:1], short.second.output)
    assert torch.equal(both.second.output[1], torch.zeros(1, E).double())
    assert both.first.output[1].isfinite().all()
    (both.first.output.sum() + both.second.output.sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


def test_a_padded_question_word_is_never_the_best_match() -> None:
    """Every real match is negative, so that a padded word, whose match is 0, would win the maximum."""
    context, question = torch.rand(B, T, D).double(), -torch.rand(B, J, D).double()
    layer, mask = AttentionFlow(Dot()), Lengths(torch.tensor([3, J]))
    weights = layer.attend(context, question, question_mask=mask).context.weights.dense()
    short = layer.attend(context[:1], question[:1, :3]).context.weights.dense()
    torch.testing.assert_close(weights[:1], short)
