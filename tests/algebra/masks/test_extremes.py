"""Masks by the thousand, as wide as numbers go, and of every integer dtype."""

import re
from typing import Any

import pytest
import torch

from regard import Causal, CenteredWindow, Documents, InputError, KindError, Lengths, Mask, Prefix, Window, attend

MANY = 2_000
INTEGERS = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
]


def join_masks(way: str) -> Mask:
    """Return thousands of masks as one, which allows what `Causal() & Window(2, 0)` does."""
    one, two = Causal(), Window(2, 0)
    mask = one & two
    for _ in range(MANY // 2):
        if way == "and":
            mask = mask & one & two
        elif way == "or":
            mask = mask | (one & two)
        elif way == "right":
            mask = one & (two & mask)
        elif way == "in turn":
            mask = (mask | two) & one & two
        else:
            mask = ~(~mask | ~one)
    return mask


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("way", ["and", "or", "right", "in turn", "not"])
def test_thousands_of_masks_are_one_mask(way: str) -> None:
    mask, plain = join_masks(way), Causal() & Window(2, 0)
    assert torch.equal(mask.table(3, 5), plain.table(3, 5))
    assert mask.plan_key == mask.plan_key
    assert hash(mask.plan_key) == hash(join_masks(way).plan_key)
    assert repr(mask).count("Window") >= MANY // 2 or way == "not"
    first, last = mask.span(0, 3, 3, 5)
    assert 0 <= first <= last <= 5
    assert not mask.columnwise
    assert mask.find_visible_keys(5) is None
    assert (mask.width, mask.causal) == ((3, True) if way in ("and", "right", "in turn") else (None, way == "or"))
    x = torch.randn(4, 2)
    attended = attend(x, x, x, mask=mask.add_head_axis())
    assert torch.allclose(attended.output, attend(x, x, x, mask=plain).output, atol=1e-6)
    assert attended.weights.summary(2).entropy.shape == (4,)
    assert attended.plan.explain()


@pytest.mark.usefixtures("as_installed")
def test_ten_thousand_masks_are_one_mask() -> None:
    mask: Mask = Causal()
    for _ in range(10_000):
        mask = mask & Window(2, 0)
    x = torch.randn(4, 2)
    assert torch.equal(attend(x, x, x, mask=mask).output, attend(x, x, x, mask=Causal() & Window(2, 0)).output)


def test_masks_that_are_joined_in_another_way_have_another_key() -> None:
    one, two = Causal(), Lengths(torch.tensor(2))
    keys = [
        (one & two).plan_key,
        (one | two).plan_key,
        (~(one & two)).plan_key,
        (~one & two).plan_key,
        (one & ~two).plan_key,
        one.plan_key,
    ]
    nested = [((one | two) & one | two).plan_key, ((one | two | one) & two).plan_key, (one | two & one | two).plan_key]
    assert len(set(keys + nested)) == len(keys) + len(nested)
    assert ((one & two) & one).plan_key == (one & (two & one)).plan_key


@pytest.mark.parametrize("size", [2**31, 2**62, 2**63, 10**30])
def test_a_window_may_be_wider_than_any_number_of_keys(size: int) -> None:
    x = torch.randn(600, 2)
    for mask, plain in (
        (Window(size, 0), Causal()),
        (Window(size, size), None),
        (Window(0, size), ~Causal() | Window(0, 0)),
        (CenteredWindow(torch.arange(600), size), None),
        (CenteredWindow(torch.arange(600.0), size), None),
    ):
        expected = attend(x, x, x, **({} if plain is None else {"mask": plain})).output  # type: ignore[arg-type]
        for backend in ("auto", "eager", "local", "rows"):
            assert torch.allclose(attend(x, x, x, mask=mask, backend=backend).output, expected, atol=1e-5)  # type: ignore[arg-type]


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("bad", [-1, -(2**63), 1.5, True, None, "2", torch.tensor(2)], ids=str)
def test_what_is_no_number_of_keys_is_refused(bad: Any) -> None:
    for make in (lambda: Window(bad, 0), lambda: Window(0, bad), lambda: CenteredWindow(torch.arange(3), bad)):
        with pytest.raises(
            (InputError, KindError), match=r"^(before|after|radius): got .*, expected (a whole number|at least 0)"
        ):
            make()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_lengths_and_documents_of_any_integer_dtype(dtype: torch.dtype) -> None:
    counts = torch.tensor([100, 127, 0]).to(dtype)
    keys = 300
    expected = torch.arange(keys) < torch.tensor([100, 127, 0])[:, None]
    assert torch.equal(Lengths(counts).table(1, keys)[:, 0], expected)
    assert torch.equal(Prefix(counts).table(keys, keys)[:, 0, 1:], expected[:, 1:])
    names = torch.tensor([1, 127, 1]).to(dtype)
    assert Documents(names).table(3, 3).int().tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    x = torch.randn(3, keys, 2)
    assert torch.equal(
        attend(x, x, x, mask=Lengths(counts)).output, attend(x, x, x, mask=Lengths(counts.long())).output
    )


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    "bad", [torch.ones(2), torch.ones(2) * float("nan"), torch.ones(2) * 1j, torch.ones(2).bool(), [1.5, 2]], ids=str
)
def test_what_does_not_count_is_refused(bad: Any) -> None:
    for make in (Lengths, Prefix, Documents):
        with pytest.raises(KindError, match=re.escape("expected an integer tensor; fix: write")):
            make(bad)


def test_lengths_beyond_the_keys_are_refused() -> None:
    x = torch.randn(2, 3, 2)
    for huge in (4, 2**31, 2**63 - 1):
        with pytest.raises(InputError, match=f"mask.lengths: got {huge}, expected at most keys=3"):
            attend(x, x, x, mask=Lengths(torch.tensor([1, huge])))


def test_documents_may_have_any_whole_number_for_a_name() -> None:
    names = torch.tensor([-1, -(2**63), 2**63 - 1, -1])
    assert Documents(names).table(4, 4).int().tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]


@pytest.mark.parametrize("center", [float("nan"), float("inf"), float("-inf"), 1e30, -1e30, 3e38])
@pytest.mark.parametrize("backend", ["auto", "eager", "local", "stream", "rows", "sdpa"])
def test_a_center_far_from_all_keys_sees_none(center: float, backend: Any) -> None:
    x = torch.randn(600, 2)
    centers = torch.arange(600.0)
    centers[5] = center
    output = attend(x, x, x, mask=CenteredWindow(centers, 2), backend=backend).output
    assert (output[5] == 0).all()
    others = torch.arange(600) != 5
    assert torch.allclose(
        output[others], attend(x, x, x, mask=CenteredWindow(torch.arange(600), 2)).output[others], atol=1e-5
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int16, torch.uint8], ids=str)
def test_centers_of_any_dtype_count_all_keys(dtype: torch.dtype) -> None:
    centers = torch.tensor([0, 128, 3 * 64]).to(dtype)
    assert CenteredWindow(centers, 1).table(3, 5000).sum(-1).tolist() == [2, 3, 3]
    assert (
        CenteredWindow(torch.tensor([4096]).to(dtype if dtype.is_floating_point else torch.int16), 0)
        .table(1, 5000)
        .sum()
        == 1
    )


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("bad", [torch.ones(3).bool(), torch.ones(3) * 1j, torch.tensor(1.0), [1.0]], ids=str)
def test_what_is_no_center_is_refused(bad: Any) -> None:
    with pytest.raises(KindError, match=r"^center: got "):
        CenteredWindow(bad, 1)
