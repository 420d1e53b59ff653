"""Softmax in a window, over overlapping views of the keys, equals its definition."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import Documents, Lengths, Mask, Softmax, Window, attend
from regard.algebra.masks import Causal, Full
from regard.algebra.shapes import Tensor
from regard.compute.kernels.windows import BlockGroup, BlockLayout, window_attention
from regard.compute.lowering import windows as lowering
from regard.compute.lowering.windows import MaskSpec, cut_blocks, find_window, group_blocks

SIZES = st.integers(1, 200)
PLAIN = Softmax()


def draw_tensors(lead: tuple[int, ...], queries: int, keys: int, dim: int = 3, value: int = 2) -> list[Tensor]:
    sizes = (queries, dim), (keys, dim), (keys, value)
    return [torch.randn(*lead, *size, dtype=torch.float64, requires_grad=True) for size in sizes]


def agree(tensors: list[Tensor], mask: Mask, normalizer: Softmax = PLAIN) -> None:
    """Output, gradients and weights of the window and of the definition."""
    query, key, value = tensors
    ours = attend(query, key, value, mask=mask, normalizer=normalizer, backend="local")
    definition = attend(query, key, value, mask=mask, normalizer=normalizer, backend="eager")
    weight = torch.randn_like(definition.output)
    assert torch.allclose(ours.output, definition.output, rtol=0, atol=1e-10)
    found, expected = (torch.autograd.grad(one.output, tensors, weight) for one in (ours, definition))
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-8)
    everything = slice(0, tensors[0].shape[-2]), slice(0, tensors[1].shape[-2])
    assert torch.allclose(ours.weights.tile(*everything), definition.weights.dense(), rtol=0, atol=1e-10)


@given(queries=SIZES, keys=SIZES, before=st.integers(0, 250), after=st.integers(0, 250), several=st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_sizes_agree_with_the_definition(queries: int, keys: int, before: int, after: int, several: bool) -> None:
    agree(draw_tensors((2,) if several else (), queries, keys), Window(before, after))


@pytest.mark.parametrize(
    ("queries", "keys", "before", "after"),
    [
        (1, 300, 10, 0),  # a step of decoding
        (300, 300, 0, 0),
        (300, 300, 255, 0),
        (256, 256, 64, 63),  # whole blocks
        (257, 257, 0, 130),
        (300, 40, 5, 5),  # most queries stand before the first key
        (40, 300, 5, 5),
        (7, 5, 10**9, 10**9),  # wider than everything
        (200, 1, 3, 3),
    ],
)
def test_edges_agree_with_the_definition(queries: int, keys: int, before: int, after: int) -> None:
    agree(draw_tensors((2, 2), queries, keys, dim=4, value=7), Window(before, after))


@pytest.mark.parametrize("budget", [1, 2**12, 2**23])
def test_masks_beside_the_window_agree_in_groups_of_any_size(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering, "BUDGET", budget)
    tensors = draw_tensors((3, 2), 200, 200)
    documents = torch.arange(200) // 30
    some = torch.rand(3, 1, 200, 200) < 0.3
    for other in (Lengths(torch.tensor([[0], [77], [200]])), Documents(documents), Causal(), Mask.keep(some), Full()):
        agree(tensors, Window(20, 9) & other)
        agree(tensors, other & Window(20, 9))
    agree(tensors, Window(20, 9))


def test_a_temperature_for_each_head_is_multiplied_in() -> None:
    temperature = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    agree(draw_tensors((2, 3), 150, 150), Window(20, 0), Softmax(temperature=temperature))


def test_leads_broadcast() -> None:
    query, key, value = draw_tensors((2, 3), 90, 90)
    agree([query, key[:, :1].detach().requires_grad_(), value[:1].detach().requires_grad_()], Window(9, 2))


def test_a_query_that_sees_nothing_gives_exactly_zero_and_so_does_its_gradient() -> None:
    query, key, value = draw_tensors((2,), 150, 150)
    output = attend(query, key, value, mask=Window(5, 5) & Lengths(torch.tensor([0, 60])), backend="local").output
    output.sum().backward()
    assert (output[0] == 0).all()
    assert (output[1, 65:] == 0).all()
    assert query.grad is not None
    assert key.grad is not None
    assert value.grad is not None
    assert (query.grad[1, 65:] == 0).all()
    for grad in (query.grad, key.grad, value.grad):
        assert grad.isfinite().all()
        assert (grad[0] == 0).all()


def test_the_gradient_is_that_of_the_output() -> None:
    cut = cut_blocks(Window(2, 1), 7, 9)
    cut = cut._replace(rows=3, blocks=3)
    sight = MaskSpec(Window(2, 1), 7, 9, (2,), torch.float64)
    groups = group_blocks(sight, Window(2, 1), cut, 3)
    assert torch.autograd.gradcheck(
        lambda q, k, v: window_attention(q, k, v, cut, groups).output, draw_tensors((2,), 7, 9)
    )


def test_blocks_inside_share_one_table() -> None:
    window, width = Window(255, 0), 64
    cut = cut_blocks(window, 16384, 16384)
    groups = group_blocks(MaskSpec(window, 16384, 16384, (1, 1), torch.float32), window, cut, width)
    assert sum(group.make_table().numel() for group in groups) <= 8 * cut.rows * cut.span  # of 256 blocks
    assert [group.start for group in groups] == [0, *(group.stop for group in groups[:-1])]
    assert groups[-1].stop == cut.blocks


def test_the_window_of_a_mask_is_the_smallest_that_types_tell() -> None:
    assert find_window(Window(3, 4) & (Full() & Window(9, 2))) == Window(3, 2)
    assert find_window(Causal() & Window(3, 4)) == Window(3, 0)
    assert find_window(Window(3, 4) | Window(1, 1)) is None
    assert find_window(~Window(3, 4)) is None
    assert find_window(Causal() & Full()) is None


def test_half_precision_keeps_its_dtype() -> None:
    query, key, value = (tensor.detach().bfloat16() for tensor in draw_tensors((2,), 200, 200, dim=8, value=8))
    ours = attend(query, key, value, mask=Window(20, 3), backend="local").output
    definition = attend(query, key, value, mask=Window(20, 3), backend="eager").output
    assert ours.dtype == torch.bfloat16
    assert torch.allclose(ours.float(), definition.float(), atol=2e-2)


def test_a_table_of_zeros_reads_all_of_a_span() -> None:
    cut = BlockLayout(rows=2, blocks=2, first=0, span=2)
    query, key, value = draw_tensors((), 4, 4)
    output, total = window_attention(
        query, key, value, cut, [BlockGroup(0, 2, lambda: torch.zeros(1, 1, 2, 2).double())]
    )
    table = (query @ key.T)[2:, 2:]
    assert torch.allclose(output[2:], table.softmax(-1) @ value[2:])
    assert total is not None
    assert torch.allclose(total[2:], table.logsumexp(-1))
