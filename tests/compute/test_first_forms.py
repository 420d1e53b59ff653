"""Forms that people write first: lengths of queries, constants, groups of heads, masks that broadcast."""

import copy
import importlib
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from jaxtyping import config
from torch import Tensor, nn

import regard
import regard.layers
from regard import (
    ALiBi,
    Causal,
    Dense,
    Dot,
    Full,
    HardMonotonic,
    InputError,
    KindError,
    Lengths,
    Mask,
    Monotonic,
    ScaledDot,
    Sigmoid,
    Softmax,
    Sparsemax,
    attend,
    masked_softmax,
)
from regard.algebra.foreign_names import COUNTERPARTS, DRAWINGS, KEPT, PLACES
from regard.algebra.masks import Table
from regard.algebra.masks.base import as_mask
from regard.layers import Attention, DecoderBlock, EncoderBlock, LearnedPositions, Rotary, Sinusoidal
from regard.models import PRESETS, build_model

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13
QUERY, KEY, VALUE = (torch.randn(B, H, n, d, dtype=torch.float64) for n, d in ((L, D), (S, D), (S, E)))


@pytest.mark.parametrize("shape", [(B,), (B, L)])
@pytest.mark.parametrize("heads", [(), (H,)])
def test_masked_softmax_is_softmax_over_the_first_keys(shape: tuple[int, ...], heads: tuple[int, ...]) -> None:
    scores, lengths = torch.randn(B, *heads, L, S).double(), torch.randint(0, S + 1, shape)
    found = masked_softmax(scores, lengths)
    for b in range(B):
        for i in range(L):
            length = int(lengths[b] if len(shape) == 1 else lengths[b, i])
            row = found[b, ..., i, :]
            torch.testing.assert_close(row[..., :length], scores[b, ..., i, :length].softmax(-1))
            assert not row[..., length:].any()
    torch.testing.assert_close(masked_softmax(scores), scores.softmax(-1))


@pytest.mark.parametrize("write", [Lengths, Lengths.per_query])
def test_lengths_of_queries_mask_attention(write: Callable[[Tensor], Mask]) -> None:
    lengths, x = torch.randint(0, S + 1, (B, L)), QUERY[:, 0]
    expected = masked_softmax(x @ KEY[:, 0].mT / D**0.5, lengths)
    found = attend(x, KEY[:, 0], VALUE[:, 0], mask=write(lengths)).weights.dense()
    torch.testing.assert_close(found, expected)
    joined = attend(x, KEY[:, 0], VALUE[:, 0], mask=write(lengths) & Lengths(torch.full((B,), S))).weights.dense()
    torch.testing.assert_close(joined, expected)
    heads = attend(QUERY, KEY, VALUE, mask=write(lengths[:, None])).weights.dense()
    torch.testing.assert_close(heads, masked_softmax(QUERY @ KEY.mT / D**0.5, lengths))


def test_lengths_of_queries_beside_heads_say_how_to_write_them() -> None:
    with pytest.raises(InputError) as caught:
        attend(QUERY, KEY, VALUE, mask=Lengths(torch.ones(B, L).long()))
    assert str(caught.value) == (
        "mask.lengths: got one for each query, (2, 5), expected one for each of (2, 3) sequences and heads; "
        "fix: write Lengths(lengths[..., None, :])"
    )


def test_a_layer_tells_lengths_of_queries_from_those_of_heads() -> None:
    x, lengths = torch.randn(B, L, 6), torch.randint(1, L + 1, (B, L))
    layer = Attention(6, heads=3)
    found = layer.attend(x, mask=Lengths(lengths)).weights.dense()
    allowed = torch.arange(L) < lengths[:, None, :, None]
    assert torch.equal(found > 0, allowed.expand(B, 3, L, L))
    by_head = layer.attend(x, mask=Lengths(lengths[:, :3])).weights.dense()
    assert torch.equal(by_head > 0, (torch.arange(L) < lengths[:, :3, None, None]).expand(B, 3, L, L))
    with pytest.raises(InputError, match="no doubt whether they are the 3 queries or the heads; fix"):
        layer(x[:, :3], mask=Lengths(lengths[:, :3].clamp_max(3)))


@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (7, 5), (5, 5)])
def test_from_the_first_key_is_the_causal_mask_of_torch(queries: int, keys: int) -> None:
    query, key = torch.randn(B, H, queries, D).double(), torch.randn(B, H, keys, D).double()
    expected = F.scaled_dot_product_attention(query, key, key, is_causal=True)
    for backend in ("auto", "eager", "stream"):
        found = attend(query, key, key, mask=Causal.from_first(), backend=backend).output
        torch.testing.assert_close(found, expected)


def test_a_plan_says_that_the_first_queries_see_no_key() -> None:
    plan = attend(QUERY[..., :5, :], KEY[..., :3, :], VALUE[..., :3, :], mask=Causal()).plan.explain()
    assert "note: the first 2 queries see no key" in plan
    assert "write Causal.from_first()" in plan
    assert "note:" not in attend(QUERY, KEY, VALUE, mask=Causal()).plan.explain()


@pytest.mark.parametrize("shape", [(1, S), (L, 1), (B, 1, 1, S), (H, L, S)])
def test_float_masks_broadcast(shape: tuple[int, ...]) -> None:
    table = torch.randn(shape).double()
    expected = F.scaled_dot_product_attention(QUERY, KEY, VALUE, attn_mask=table.expand(B, H, L, S))
    for backend in ("auto", "eager", "stream"):
        torch.testing.assert_close(attend(QUERY, KEY, VALUE, bias=Dense(table), backend=backend).output, expected)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_heads_of_queries_share_the_keys_of_their_group_as_in_torch(groups: int) -> None:
    query = torch.randn(B, 4, L, D).double()
    key, value = torch.randn(B, groups, S, D).double(), torch.randn(B, groups, S, E).double()
    expected = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    output, weights = attend(query, key, value, bias=ALiBi(slopes=torch.zeros(4).double()))
    torch.testing.assert_close(output, expected)
    assert weights.shape == (B, 4, L, S)
    with pytest.raises(InputError, match="expected axes that broadcast"):
        attend(query[:, :3], key[:, :1].expand(-1, 2, -1, -1), value[:, :1].expand(-1, 2, -1, -1))


MASKS = {
    "full": Full(),
    "causal and lengths": Causal() & Lengths(torch.tensor([[7], [2]])),
    "table of heads": Table(torch.rand(4, L, S) < 0.7),
    "lengths of heads": Lengths(torch.randint(0, S + 1, (B, 4))),
    "lengths of queries": Lengths(torch.randint(0, S + 1, (B, 1, L))),
}
NORMALIZERS = {"sparsemax": Sparsemax(), "per head": Softmax(temperature=torch.tensor([0.5, 1.0, 2.0, 3.0]).double())}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("groups", [1, 2])
def test_groups_give_what_repeated_keys_give(mask: str, normalizer: str, groups: int) -> None:
    options = {"mask": MASKS[mask], "normalizer": NORMALIZERS[normalizer]}
    query, key, value = (torch.randn(B, n, m, D).double() for n, m in ((4, L), (groups, S), (groups, S)))
    output, weights = attend(query, key, value, **options)
    key, value = (tensor.repeat_interleave(4 // groups, dim=1) for tensor in (key, value))
    expected = attend(query, key, value, **options)
    torch.testing.assert_close(output, expected.output)
    torch.testing.assert_close(weights.dense(), expected.weights.dense())


def test_heads_that_are_alike_share_keys_without_a_copy() -> None:
    query, key = torch.randn(B, 4, L, D), torch.randn(B, 2, S, D)
    for mask in (Full(), Causal(), Lengths(torch.tensor([[7], [2]]))):
        assert attend(query, key, key, mask=mask).weights.call.key.numel() == key.numel()


class GroupedModule(nn.Module):
    """A module of somebody else, whose heads share keys."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return attend(query, key, key).output


@pytest.mark.parametrize("batch", [(), (B,)])
def test_observed_groups_have_one_axis_of_heads(batch: tuple[int, ...]) -> None:
    query, key = torch.randn(*batch, 4, L, D), torch.randn(*batch, 2, S, D)
    module = GroupedModule()
    with regard.observe(module) as recording:
        module(query, key)
    found = attend(query, key, key).weights.dense()
    torch.testing.assert_close(torch.as_tensor(recording["GroupedModule"].dense()), found[0] if batch else found)


@pytest.mark.parametrize("offset", [1.5, torch.tensor([0.5, -1.0, 2.0]).double()])
def test_a_constant_is_added_to_every_score(offset: float | torch.Tensor) -> None:
    number = offset if isinstance(offset, float) else offset[:, None, None]
    for score in (ScaledDot() + offset, offset + ScaledDot()) if isinstance(offset, float) else (ScaledDot() + offset,):
        for backend in ("auto", "eager"):
            found = attend(QUERY, KEY, VALUE, score=score, normalizer=Sigmoid(), backend=backend).weights.dense()
            torch.testing.assert_close(found, (QUERY @ KEY.mT / D**0.5 + number).sigmoid())
        torch.testing.assert_close(attend(QUERY, KEY, VALUE, score=score).output, attend(QUERY, KEY, VALUE).output)
    assert (Dot() + 1).form == "dot"


def test_slopes_are_given_or_the_papers() -> None:
    slopes = torch.tensor([0.5, 0.1, 0.3]).double()
    found = attend(QUERY, KEY, VALUE, bias=ALiBi(slopes=slopes), mask=Causal()).output
    distance = (torch.arange(S - L, S)[:, None] - torch.arange(S)).abs()
    table = Causal().table(L, S).double().log() - slopes[:, None, None] * distance
    torch.testing.assert_close(found, F.scaled_dot_product_attention(QUERY, KEY, VALUE, attn_mask=table))
    with pytest.raises(InputError, match=r"^heads: got None, expected a number of heads, at least 1, or a slope for"):
        ALiBi()


@pytest.mark.parametrize("kind", [Monotonic, HardMonotonic])
def test_stepping_with_the_weights_before_is_all_steps_at_once(kind: type[Monotonic | HardMonotonic]) -> None:
    _, whole = attend(QUERY, KEY, VALUE, normalizer=kind())
    previous = None
    for step in range(L):
        _, weights = attend(QUERY[..., step : step + 1, :], KEY, VALUE, normalizer=kind(previous=previous))
        previous = weights[..., 0, :]
        torch.testing.assert_close(previous, whole[..., step, :])


def test_rotary_in_halves_is_that_of_llama_and_partial_and_scaled() -> None:
    x = torch.randn(B, H, L, 8).double()
    omega = 10000.0 ** -(torch.arange(0, 8, 2).double() / 8)
    angles = torch.arange(L).double()[:, None] * omega
    cosine, sine = (torch.cat([table, table], -1) for table in (angles.cos(), angles.sin()))
    turned = torch.cat([-x[..., 4:], x[..., :4]], -1)
    torch.testing.assert_close(Rotary(8, layout="halves")(x), x * cosine + turned * sine)
    order = torch.arange(8).view(2, 4).T.flatten()  # the same pairs, next to each other
    torch.testing.assert_close(Rotary(8, layout="halves")(x)[..., order], Rotary(8)(x[..., order]))
    partial = Rotary(8, rotated=4)(x)
    torch.testing.assert_close(partial, torch.cat([Rotary(4)(x[..., :4]), x[..., 4:]], -1))
    torch.testing.assert_close(Rotary(8, scaling=2.0)(x)[..., 2, :], Rotary(8)(x[..., 2:3, :], start=1)[..., 0, :])


def test_lengths_may_be_a_list_or_an_array() -> None:
    """In a process of its own: here the types of tests are checked, which ask for tensors."""
    code = """
import numpy, torch
from regard import Lengths, masked_softmax
for lengths in ([7, 2], (7, 2), numpy.array([7, 2])):
    assert Lengths(lengths).table(1, 9).sum(-1).tolist() == [[7], [2]]
    assert (masked_softmax(torch.zeros(2, 1, 9), lengths) > 0).sum(-1).tolist() == [[7], [2]]
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize(
    ("tensor", "fix"),
    [
        (torch.tensor([7, 3]), "write Lengths(tensor) if it counts keys, "),
        (torch.zeros(L, S), "write bias=Dense(tensor) if it is added to scores, "),
        (torch.zeros(L, S).bool(), "write Mask.keep(tensor) if True means may attend, "),
    ],
)
def test_a_tensor_for_a_mask_is_told_by_what_it_holds(tensor: Tensor, fix: str) -> None:
    with pytest.raises(KindError) as caught:
        as_mask(tensor)
    assert f"; fix: {fix}" in str(caught.value)


def test_heads_follow_the_size_as_in_torch() -> None:
    x = torch.randn(B, L, 6)
    assert Attention(6, 3).projections.heads == 3
    assert EncoderBlock(6, 3)(x).shape == x.shape


@pytest.mark.parametrize(
    ("module", "name", "fix"),
    [
        (regard, "MultiheadAttention", "regard.layers.Attention(64, heads=8), or Attention.from_torch(module)"),
        (regard.layers, "PositionalEncoding", "regard.layers.Sinusoidal(64), LearnedPositions(512, 64) or Rotary(64)"),
        (regard.layers, "EncodrBlock", "regard.layers.EncoderBlock"),
        (regard, "Lenghts", "regard.Lengths"),
    ],
)
def test_names_of_other_libraries_and_misspelt_ones_say_what_to_write(module: Any, name: str, fix: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    where = module.__name__
    assert str(caught.value) == f"{where}.{name}: got no such name, expected one of dir({where}); fix: write {fix}"
    assert not hasattr(module, "_private")


def test_every_counterpart_of_a_foreign_name_can_be_written() -> None:
    query = key = value = torch.randn(B, L, 64)  # noqa: F841
    lengths, alpha = torch.tensor([1, 2]), 1.5  # noqa: F841
    for text in COUNTERPARTS.values():
        written = re.match(r"[\w.]+\([^()]*\)", text)
        assert written is not None
        assert eval(written[0])


def test_a_handle_says_how_to_get_the_tensor() -> None:
    weights = attend(QUERY, KEY, VALUE).weights
    with pytest.raises(AttributeError) as caught:
        weights.sum(-1)
    assert str(caught.value) == "weights.sum: got a handle, expected a tensor; fix: write weights.dense().sum"
    assert not hasattr(weights, "nothing")


@pytest.mark.parametrize("name", KEPT.split())
def test_what_a_layer_keeps_elsewhere_is_asked_of_a_call(name: str) -> None:
    layer, block, model = (
        Attention(8, heads=2),
        EncoderBlock(8, heads=2),
        build_model(PRESETS["transformer-tiny"], source=11, target=11),
    )
    said = {one: catch(lambda one=one: getattr(one, name)) for one in (layer, block, model) if not hasattr(one, name)}
    assert said[layer] == f"layer.{name}: got nothing kept of a call, expected a call; fix: write {FROM_ATTEND}"
    if name != "attention":
        observe = "with regard.observe(layer) as recording: layer(…)"
        assert said[block].endswith(f"expected a call; fix: write {observe}")
    assert said[model].endswith("fix: write with regard.observe(model) as recording: model(…)")


FROM_ATTEND = "output, weights = layer.attend(…)"


def catch(call: Callable[[], object]) -> str:
    with pytest.raises(AttributeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for place, names in PLACES.items() for name in names.split()]
)
def test_a_part_of_a_module_is_found_where_it_is(name: str, place: str) -> None:
    block = DecoderBlock(8, heads=2)
    found = f"attention.{place}" if place.partition(".")[2] else place
    said = catch(lambda: getattr(block, name))
    assert said == f"layer.{name}: got no such attribute, expected one of dir(layer); fix: write layer.{found}"
    assert attrgetter(found)(block) is not None


def test_attributes_that_python_asks_for_stay_as_they_are() -> None:
    layer = Attention(8, heads=2)
    assert not hasattr(layer, "__fspath__")
    assert not hasattr(layer, "nothing_like_it")
    assert repr(pickle.loads(pickle.dumps(copy.deepcopy(layer)))) == repr(layer)
    assert catch(lambda: layer.nothing_like_it).endswith(
        "expected one of dir(layer); fix: print(layer) shows its parts"
    )


@pytest.mark.parametrize(
    ("write", "fix"),
    [
        (lambda x: attend(x, x, x, return_weights=True), "output, weights = attend(…), which has no such switch"),
        (lambda x: attend(x, x, x, need_weights=True), "output, weights = attend(…), which has no such switch"),
        (lambda x: attend(x, x, x, previous=x), "normalizer=Monotonic(previous=…)"),
        (lambda x: Attention(8, heads=2)(x, return_attention=True), f"{FROM_ATTEND}, which has no such switch"),
        (lambda x: Attention(8, heads=2)(query=x, key=x, value=x), "source=…, content=… (source=… if there is no key)"),
        (lambda x: Attention(dim=8, heads=2), "size=8"),
        (lambda x: EncoderBlock(8, heads=2, hidden=32), "feed_forward=FeedForward(64, 256)"),
        (lambda x: Rotary(8, interleaved=True), 'layout="neighbors" if True, layout="halves" if False'),
        (lambda x: Sinusoidal(8, max_len=100), "nothing: positions have no end"),
        (lambda x: LearnedPositions(max_len=100, size=8), "most=100"),
    ],
)
def test_a_keyword_of_another_library_is_answered_with_ours(write: Callable[[Tensor], object], fix: str) -> None:
    with pytest.raises(KindError) as caught:
        write(torch.randn(2, 3, 8))
    assert str(caught.value).endswith(f"; fix: write {fix}")


def test_a_list_in_place_of_a_tensor_is_said() -> None:
    before, x = config.jaxtyping_disable, torch.randn(2, 3, 8)
    config.update("jaxtyping_disable", True)  # as installed
    try:
        for call in (lambda: ALiBi(slopes=[0.5]), lambda: attend(x, x, x, normalizer=Monotonic(previous=[1.0]))):  # type: ignore[arg-type]
            with pytest.raises(KindError, match="got a list, expected a tensor; fix: write torch"):
                call()
    finally:
        config.update("jaxtyping_disable", before)


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_of_another_library_is_answered_with_ours(name: str) -> None:
    said = catch(lambda: getattr(regard, name))
    for module, function in re.findall(r"from ([\w.]+) import (\w+)", said):
        assert hasattr(importlib.import_module(module), function)
    assert " import " in said
