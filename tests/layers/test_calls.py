"""What people type first: a layer called with one, two or three sequences, under any mask."""

import math
from typing import Any

import pytest
import torch

from regard import Causal, Full, Lengths, Mask
from regard.layers import Attention, Projections, Rotary

B, L, S, SIZE = 2, 5, 7, 40


VARIATIONS: dict[str, Any] = {
    "full": (Full(), torch.ones(B, L, S)),
    "causal": (Causal(), torch.ones(L, S).tril(S - L).expand(B, L, S)),
    "padding": (Lengths(torch.tensor([4, 0])), torch.stack([torch.arange(S) < n for n in (4, 0)])[:, None]),
    "table": (Mask.keep(torch.eye(L, S).bool()), torch.eye(L, S)),
    "padding of a table": (Mask.drop_keys(torch.arange(S)[None] > torch.tensor([[3], [5]])), None),
}


@pytest.mark.parametrize("groups", [None, 1, 2])
@pytest.mark.parametrize("name", VARIATIONS)
def test_the_three_ways_to_call_a_layer_are_the_formula_under_every_mask(name: str, groups: int | None) -> None:
    mask, table = VARIATIONS[name]
    table = mask.table(L, S) if table is None else table
    layer = Attention(SIZE, heads=4, groups=groups).double()
    query, key, value = (torch.randn(B, n, SIZE, dtype=torch.float64) for n in (L, S, S))
    parts = Projections.linear(SIZE, heads=4, groups=groups).double()
    width = SIZE // 4 * (groups or 4)
    matrices = layer.projections.input.weight.split([SIZE, width, width])
    for own, matrix in zip((parts.query, parts.key, parts.value), matrices, strict=True):
        own.weight.data.copy_(matrix)
    parts.output.load_state_dict(layer.projections.output.state_dict())
    for source, content in ((key, key), (key, value)):
        heads = [parts.project_queries(query), *parts.project_keys_values(source, content)]
        heads[1:] = [part.repeat_interleave(4 // (groups or 4), 1) for part in heads[1:]]
        allowed = (table > 0).expand(B, L, S)[:, None]
        scores = (heads[0] @ heads[1].mT / math.sqrt(SIZE // 4)).masked_fill(~allowed, float("-inf"))
        expected = parts.merge(scores.softmax(-1).nan_to_num() @ heads[2])
        given = (source,) if content is source else (source, content)
        torch.testing.assert_close(layer(query, *given, mask=mask), expected)
        output, weights = layer.attend(query, *given, mask=mask)
        torch.testing.assert_close(output, expected)
        torch.testing.assert_close(weights[1, 2], scores.softmax(-1).nan_to_num()[1, 2])


def test_a_layer_of_one_sequence_is_cross_attention_to_itself() -> None:
    layer, x = Attention(SIZE, heads=4, groups=2, rotary=Rotary(SIZE // 4)).double(), torch.randn(B, L, SIZE).double()
    for mask in (Full(), Causal(), Lengths(torch.tensor([3, 1])) & Causal()):
        torch.testing.assert_close(layer(x, mask=mask), layer(x, x, mask=mask))
    torch.testing.assert_close(layer(x[0]), layer(x)[0])


@pytest.mark.parametrize("mask", [Lengths(torch.tensor([4, 2])), Lengths(torch.tensor([4, 2])) & Causal()])
def test_what_the_mask_of_a_call_hides_may_be_anything_even_for_the_gradients_of_the_layer(mask: Mask) -> None:
    layer = Attention(SIZE, heads=4)
    clean, query = torch.randn(B, S, SIZE), torch.randn(B, S, SIZE)
    hidden = torch.arange(S) >= torch.tensor([[4], [2]])
    found = []
    for filler in (0.0, float("nan")):
        source = clean.masked_fill(hidden[..., None], filler)
        layer.zero_grad()
        out = layer(query, source, mask=mask) + layer(query, source, source.clone(), mask=mask)
        (out.sum() + layer(source, mask=mask)[~hidden].sum()).backward()
        found.append([parameter.grad.clone() for parameter in layer.parameters() if parameter.grad is not None])
    torch.testing.assert_close(*found)
