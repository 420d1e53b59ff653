"""Masks compose as sets do, and their ranges of keys hold what they allow."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import Causal, CenteredWindow, Documents, Full, KindError, Lengths, Mask, Prefix, Window
from regard.algebra.pairs import Pairs
from regard.testing import check_mask


def draw_bits(count: int) -> st.SearchStrategy[list[bool]]:
    return st.lists(st.booleans(), min_size=count, max_size=count)


@st.composite
def draw_simple_mask(draw: st.DrawFn, queries: int, keys: int) -> Mask:
    """Draw any mask of the catalog that fits."""
    counts, some = st.integers(0, keys), st.integers(0, 4)
    kinds: dict[str, st.SearchStrategy[Mask]] = {
        "full": st.just(Full()),
        "causal": st.just(Causal()),
        "window": st.builds(Window, before=some, after=some),
        "lengths": st.lists(counts, min_size=2, max_size=2).map(lambda c: Lengths(torch.tensor(c))),
        "length": counts.map(lambda c: Lengths(torch.tensor(c))),
        "prefix": st.lists(counts, min_size=2, max_size=2).map(lambda c: Prefix(torch.tensor(c))),
        "around": st.tuples(st.lists(st.floats(-3, keys + 3), min_size=queries, max_size=queries), some).map(
            lambda made: CenteredWindow(torch.tensor(made[0]), made[1])
        ),
        "documents": st.tuples(draw_bits(keys), draw_bits(queries)).map(
            lambda made: Documents(torch.tensor(made[0]).long(), torch.tensor(made[1]).long())
        ),
        "table": draw_bits(queries * keys).map(lambda cells: Mask.keep(torch.tensor(cells).view(queries, keys))),
        "keys": draw_bits(keys).map(lambda cells: Mask.keep(torch.tensor(cells)[None])),
    }
    return draw(kinds[draw(st.sampled_from(list(kinds)))])


def draw_composed_mask(data: st.DataObject, queries: int, keys: int, depth: int = 2) -> Mask:
    """Draw a mask made of masks."""
    if depth == 0 or data.draw(st.booleans()):
        return data.draw(draw_simple_mask(queries, keys))
    left, right = draw_composed_mask(data, queries, keys, depth - 1), draw_composed_mask(data, queries, keys, depth - 1)
    return {"&": left & right, "|": left | right, "~": ~left}[data.draw(st.sampled_from("&|~"))]


sizes = st.tuples(st.integers(1, 7), st.integers(1, 7))


@given(st.data(), sizes)
def test_masks_compose_as_sets_do(data: st.DataObject, size: tuple[int, int]) -> None:
    one, two, three = (draw_composed_mask(data, *size) for _ in range(3))

    def are_equal(left: Mask, right: Mask) -> bool:
        return torch.equal(*torch.broadcast_tensors(left.table(*size), right.table(*size)))

    assert torch.equal((one & two).table(*size), one.table(*size) & two.table(*size))
    assert torch.equal((one | two).table(*size), one.table(*size) | two.table(*size))
    assert torch.equal((~one).table(*size), ~one.table(*size))
    assert are_equal(one & two, two & one)
    assert are_equal(one | two, two | one)
    assert are_equal((one & two) & three, one & (two & three))
    assert are_equal(one & (two | three), (one & two) | (one & three))
    assert are_equal(~(one & two), ~one | ~two)
    assert are_equal(~~one, one)
    assert are_equal(one & Full(), one)
    assert not (one & ~one).table(*size).any()


@given(st.data(), sizes)
def test_a_range_of_keys_holds_every_key_that_is_allowed(data: st.DataObject, size: tuple[int, int]) -> None:
    queries, keys = size
    mask = draw_composed_mask(data, queries, keys)
    start = data.draw(st.integers(0, queries - 1))
    stop = data.draw(st.integers(start + 1, queries))
    first, last = mask.span(start, stop, queries, keys)
    assert 0 <= first <= last <= keys
    seen = mask.table(queries, keys)[..., start:stop, :]
    assert not seen[..., :first].any()
    assert not seen[..., last:].any()


@given(st.data(), sizes)
def test_a_block_says_what_the_whole_says(data: st.DataObject, size: tuple[int, int]) -> None:
    queries, keys = size
    mask = draw_composed_mask(data, queries, keys)
    rows = sorted(data.draw(st.tuples(st.integers(0, queries), st.integers(0, queries))))
    columns = sorted(data.draw(st.tuples(st.integers(0, keys), st.integers(0, keys))))
    block = mask.allows(Pairs(queries, keys, rows=(rows[0], rows[1]), columns=(columns[0], columns[1])))
    whole = mask.table(queries, keys)[..., rows[0] : rows[1], columns[0] : columns[1]]
    assert torch.equal(block.expand_as(whole), whole)


@given(st.data(), sizes)
def test_what_a_mask_says_of_itself_is_true(data: st.DataObject, size: tuple[int, int]) -> None:
    queries, keys = size
    mask = draw_composed_mask(data, queries, keys)
    table = mask.table(queries, keys)
    if mask.causal:
        assert not (table & ~Causal().table(queries, keys)).any()
    if mask.columnwise:
        assert (table == table[..., :1, :]).all()
    if mask.width is not None:
        assert int(table.sum(-1).max()) <= mask.width
    visible = mask.find_visible_keys(keys)
    if visible is not None:
        assert not (table.any(-2) & ~visible).any()


@pytest.mark.parametrize(
    "mask",
    [
        Causal(),
        Window(before=2, after=1),
        Lengths(torch.tensor([[0], [5]])),
        Prefix(torch.tensor(3)),
        Causal() & Lengths(torch.tensor(4)),
        ~Causal() | Window(before=1, after=1),
    ],
    ids=repr,
)
def test_masks_pass_the_public_check(mask: Mask) -> None:
    check_mask(mask)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("compose", [lambda m, t: m & t, lambda m, t: m | t], ids=["and", "or"])
def test_a_bare_tensor_does_not_compose(compose: type) -> None:
    sentence = (
        r"^mask: got a bool tensor of shape \(5, 7\), expected a Mask, whose polarity is in its type; "
        r"fix: write Mask.keep\(tensor\) if True means may attend, Mask.drop\(tensor\) if True means padding$"
    )
    with pytest.raises(KindError, match=sentence):
        compose(Causal(), torch.ones(5, 7, dtype=torch.bool))
