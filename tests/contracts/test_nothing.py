"""A batch of nothing gives nothing; no query and no key are one sentence, on every path."""

import re
from collections.abc import Callable

import pytest
import torch

from regard import InputError, Lengths, Mask, attend
from regard.algebra import catalog
from regard.algebra.shapes import Tensor
from regard.compute import catalog_cases, verification
from regard.compute.catalog_cases import CatalogCase
from regard.compute.verification import build_parts, find_supported_backends
from regard.layers import (
    Attention,
    AttentionFlow,
    CoAttention,
    GatedHeads,
    Hops,
    LocalAttention,
    Memory,
    Pooling,
    Rotary,
)

FAMILIES = [
    list(catalog.SCORES),
    list(catalog.BIASES),
    list(catalog.MASKS),
    list(catalog.NORMALIZERS),
    list(catalog.AGGREGATES),
]

AROUND = CatalogCase("dot", "none", "around", "softmax", "soft")


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("lead", [(0,), (0, 3)], ids=str)
@pytest.mark.parametrize("case", [*catalog_cases.choose_pairwise_cases(FAMILIES)[::4], AROUND], ids=str)
def test_a_batch_of_none_gives_none(case: CatalogCase, lead: tuple[int, ...]) -> None:
    sizes = verification.SMALL._replace(lead=lead)
    parts = build_parts(case, sizes._replace(lead=(*lead[:-1], lead[-1] or 1)))
    for backend in ["auto", "eager", *find_supported_backends(parts, sizes)]:
        tensors = verification.draw_inputs(sizes)
        attended = verification.run_backend(parts, tensors, backend)
        shape = (*lead, sizes.queries)
        assert attended.output.shape == (*shape, sizes.value), backend
        weights = attended.weights
        assert weights.dense().shape == (*shape, sizes.keys), backend
        assert weights.tile(slice(0, 1), slice(0, 2)).shape == (*lead, 1, 2)
        assert weights.entropy().shape == shape
        assert weights.received_weight().shape == (*lead, sizes.keys)
        assert weights.top(2).keys.shape == (*shape, 2)
        attended.output.sum().backward()
        assert all(tensor.grad is None or tensor.grad.shape == tensor.shape for tensor in tensors)


def make_floats(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


LAYERS: dict[str, Callable[[int, int, int], Tensor]] = {
    "attention": lambda b, q, k: read(Attention(8, heads=2), b, q, k),
    "grouped": lambda b, q, k: read(Attention(8, heads=4, groups=2), b, q, k),
    "rotary": lambda b, q, k: read(Attention(8, heads=2, rotary=Rotary(4)), b, q, k),
    "local": lambda b, q, k: attend_locally(b, q, k),
    "pooling": lambda b, q, k: Pooling(8, queries=q).double()(make_floats(b, k, 8)),
    "hops": lambda b, q, k: (
        Hops.linear(8).double()(make_floats(b, q, 8), Memory(make_floats(b, k, 8), make_floats(b, k, 8))).output
    ),
    "flow": lambda b, q, k: AttentionFlow(8).double()(make_floats(b, q, 8), make_floats(b, k, 8)),
    "co-attention": lambda b, q, k: (
        CoAttention(8, 8, hidden=3).double()(make_floats(b, q, 8), make_floats(b, k, 8)).first.output
    ),
    "gated": lambda b, q, k: GatedHeads(8, 3, positions=9).double()(make_floats(b, k, 8)).output,
}


def read(layer: Attention, batch: int, queries: int, keys: int) -> Tensor:
    layer = layer.double()
    memory = layer.remember(make_floats(batch, keys, 8), mask=Lengths(torch.full((batch,), min(1, keys))))
    memory = memory.append(layer.remember(make_floats(batch, 0, 8), start=memory.next_position))
    return layer(make_floats(batch, queries, 8), memory)


def attend_locally(batch: int, queries: int, keys: int) -> Tensor:
    layer = LocalAttention(Attention(8, heads=2), radius=2, size=8).double()
    output: Tensor = layer(make_floats(batch, queries, 8), layer.attention.remember(make_floats(batch, keys, 8)))
    return output


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_takes_a_batch_of_none(name: str) -> None:
    assert LAYERS[name](0, 3, 5).shape[0] == 0
    assert LAYERS[name](2, 3, 5).shape[0] == 2


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("sizes", [(2, 0, 5), (2, 3, 0), (0, 0, 0), (2, 0, 0)], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_no_query_and_no_key_are_one_sentence_in_a_layer(name: str, sizes: tuple[int, int, int]) -> None:
    if name == "gated" and sizes[2]:
        return
    with pytest.raises(InputError, match=r"got .*, expected at least one .*; fix: "):
        LAYERS[name](*sizes)


@pytest.mark.parametrize("backend", ["auto", "eager", "sdpa", "local", "stream", "rows"])
def test_no_query_and_no_key_are_one_sentence(backend: str) -> None:
    some, none = torch.ones(2, 3, 5), torch.ones(2, 0, 5)
    sentence = "at least one in ({}, width); fix: skip the call when there is nothing"
    with pytest.raises(InputError, match=re.escape(sentence.format("queries"))):
        attend(none, some, some, backend=backend)  # type: ignore[arg-type]
    for mask in (Mask.keep_keys(torch.ones(2, 0, dtype=torch.bool)), Lengths(torch.tensor([0, 0]))):
        with pytest.raises(InputError, match=re.escape(sentence.format("keys"))):
            attend(some, none, none, mask=mask, backend=backend)  # type: ignore[arg-type]


def test_nothing_may_be_remembered_before_something_is() -> None:
    layer = Attention(8, heads=2)
    nothing = layer.remember(torch.ones(2, 0, 8), mask=Lengths(torch.tensor([0, 0])))
    x = torch.randn(2, 3, 8)
    assert torch.equal(layer(x, nothing.append(layer.remember(x))), layer(x, layer.remember(x)))
