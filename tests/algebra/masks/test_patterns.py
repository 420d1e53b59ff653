"""Each mask of the catalog by its table, written by hand."""

import re

import pytest
import torch

from regard import Causal, CenteredWindow, Documents, Full, InputError, KindError, Lengths, Mask, Prefix, Window, attend
from regard.algebra.pairs import Pairs


def draw_mask(mask: Mask, queries: int, keys: int) -> list[str]:
    """Return a row of x and . for each query."""
    return ["".join(".x"[int(cell)] for cell in row) for row in mask.table(queries, keys)]


def test_full() -> None:
    assert draw_mask(Full(), 2, 3) == ["xxx", "xxx"]


def test_causal_puts_the_last_query_on_the_last_key() -> None:
    assert draw_mask(Causal(), 3, 3) == ["x..", "xx.", "xxx"]
    assert draw_mask(Causal(), 2, 5) == ["xxxx.", "xxxxx"]
    assert draw_mask(Causal(), 1, 3) == ["xxx"]
    assert draw_mask(Causal(), 5, 2) == ["..", "..", "..", "x.", "xx"]


def test_window() -> None:
    assert draw_mask(Window(before=1, after=2), 5, 5) == ["xxx..", "xxxx.", ".xxxx", "..xxx", "...xx"]
    assert draw_mask(Window(before=0, after=0), 2, 5) == ["...x.", "....x"]
    assert draw_mask(Window(before=1, after=0), 5, 3) == ["...", "...", "x..", "xx.", ".xx"]


def test_around_keeps_both_ends_and_takes_fractions() -> None:
    mask = CenteredWindow(torch.tensor([0.0, 2.0, 2.5, 6.0, -3.0]), radius=1)
    assert draw_mask(mask, 5, 5) == ["xx...", ".xxx.", "..xx.", ".....", "....."]


def test_lengths() -> None:
    assert draw_mask(Lengths(torch.tensor(2)), 2, 5) == ["xx...", "xx..."]
    table = Lengths(torch.tensor([0, 1, 3])).table(1, 3)
    assert table[:, 0].int().tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 1]]


def test_prefix() -> None:
    assert draw_mask(Prefix(torch.tensor(2)), 5, 5) == ["xx...", "xx...", "xxx..", "xxxx.", "xxxxx"]
    assert draw_mask(Prefix(torch.tensor(0)), 3, 3) == draw_mask(Causal(), 3, 3)
    assert draw_mask(Prefix(torch.tensor(3)), 3, 3) == draw_mask(Full(), 3, 3)


def test_documents() -> None:
    names = torch.tensor([7, 7, 3, 7, 3])
    assert draw_mask(Documents(names), 5, 5) == ["xx.x.", "xx.x.", "..x.x", "xx.x.", "..x.x"]
    assert draw_mask(Documents(names), 2, 5) == ["xx.x.", "..x.x"]
    assert draw_mask(Documents(names, torch.tensor([3, 9, 7])), 3, 5) == ["..x.x", ".....", "xx.x."]


def test_table_says_its_polarity() -> None:
    cells = torch.tensor([[True, False, False], [False, True, True]])
    assert draw_mask(Mask.keep(cells), 2, 3) == ["x..", ".xx"]
    assert draw_mask(Mask.drop(cells), 2, 3) == [".xx", "x.."]


def test_a_table_of_one_row_or_column_is_shared() -> None:
    assert draw_mask(Mask.keep(torch.tensor([[True, False, True]])), 2, 3) == ["x.x", "x.x"]
    assert draw_mask(Mask.keep(torch.tensor([[True], [False]])), 2, 3) == ["xxx", "..."]


@pytest.mark.parametrize("queries", [1, 2, 5, 11])
@pytest.mark.parametrize("mask", [Causal(), Window(before=2, after=1), Window(before=3, after=0)], ids=repr)
def test_one_step_with_a_cache_is_the_last_row_of_the_whole(mask: Mask, queries: int) -> None:
    keys = 7
    for cached in range(1, keys + 1):
        step = mask.table(1, cached)
        assert torch.equal(step[0], mask.table(keys, keys)[cached - 1, :cached])
    assert torch.equal(mask.table(queries, keys)[-1], mask.table(1, keys)[0])


def test_over_heads_puts_an_axis_behind_the_sequences() -> None:
    lengths = torch.tensor([2, 3])
    for mask in (
        Lengths(lengths),
        Prefix(lengths),
        Documents(torch.tensor([[0, 0, 1], [0, 1, 1]])),
        Documents(torch.tensor([[0, 0, 1], [0, 1, 1]]), torch.tensor([[0, 0, 1], [0, 1, 1]])),
        Documents(torch.tensor([0, 0, 1]), torch.tensor([[0, 0, 1], [0, 1, 1]])),
        Documents(torch.tensor([[0, 0, 1], [0, 1, 1]]), torch.tensor([0, 0, 1])),
        CenteredWindow(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]), 1),
        Mask.keep(torch.rand(2, 3, 3) < 0.5),
        Causal() & Lengths(lengths),
        Causal() | Lengths(lengths),
        ~Lengths(lengths),
    ):
        plain, over = mask.table(3, 3), mask.add_head_axis().table(3, 3)
        assert over.shape == (2, 1, 3, 3), mask
        assert torch.equal(over[:, 0], plain), mask


@pytest.mark.parametrize(
    "mask",
    [
        Full(),
        Causal(),
        Window(before=1, after=1),
        Lengths(torch.tensor(2)),
        Prefix(torch.tensor(2)),
        Documents(torch.tensor([0, 1])),
        CenteredWindow(torch.zeros(3), 1),
        Mask.keep(torch.ones(3, 3, dtype=torch.bool)),
    ],
    ids=lambda m: type(m).__name__,
)
def test_without_sequences_over_heads_changes_nothing(mask: Mask) -> None:
    assert mask.add_head_axis() is mask


def test_a_block_sees_its_own_rows_and_columns() -> None:
    for mask in (Causal(), Window(before=2, after=1), Lengths(torch.tensor(4)), Documents(torch.arange(7) // 3)):
        whole = mask.table(5, 7)
        block = mask.allows(Pairs(5, 7, rows=(1, 4), columns=(2, 6)))
        assert torch.equal(block.expand(3, 4), whole[1:4, 2:6]), mask


SENTENCES = {
    "before": (
        lambda: Window(before=-1, after=0),
        "before: got -1, expected at least 0; fix: count the keys on that side of the query",
    ),
    "after": (
        lambda: Window(before=0, after=-2),
        "after: got -2, expected at least 0; fix: count the keys on that side of the query",
    ),
    "radius": (
        lambda: CenteredWindow(torch.zeros(3), -1),
        "radius: got -1, expected at least 0; fix: count the keys on each side of the center",
    ),
    "negative": (
        lambda: Lengths(torch.tensor([3, -1])),
        "lengths: got -1, expected at least 0; fix: a length counts keys; an empty sequence has length 0",
    ),
    "negative prefix": (
        lambda: Prefix(torch.tensor([-2])),
        "lengths: got -2, expected at least 0; fix: a length counts keys; an empty sequence has length 0",
    ),
}
KINDS = {
    "float lengths": (
        lambda: Lengths(torch.tensor([1.5])),
        "lengths: got a float32 tensor of shape (1,), expected an integer tensor; fix: write lengths.long()",
    ),
    "bool lengths": (
        lambda: Lengths(torch.tensor([True])),
        "lengths: got a bool tensor of shape (1,), expected an integer tensor; fix: write mask.sum(-1), which counts",
    ),
    "list of centers": (
        lambda: CenteredWindow([3.0, 5.0], 1),  # type: ignore[arg-type]
        "center: got a list, expected a tensor; fix: write torch.tensor(...)",
    ),
    "float table": (
        lambda: Mask.keep(torch.zeros(2, 3)),
        "table: got a float32 tensor of shape (2, 3), expected a bool tensor; fix: write Mask.keep(tensor.bool())",
    ),
    "int table": (
        lambda: Mask.drop(torch.zeros(2, 3, dtype=torch.long)),
        "table: got a int64 tensor of shape (2, 3), expected a bool tensor; fix: write Mask.drop(tensor.bool())",
    ),
    "list for a table": (
        lambda: Mask.drop([[True]]),  # type: ignore[arg-type]
        "table: got a list, expected a bool tensor; fix: write Mask.drop(tensor.bool())",
    ),
}


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", SENTENCES)
def test_numbers_that_count_nothing_are_one_sentence(name: str) -> None:
    build, sentence = SENTENCES[name]
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        build()


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", KINDS)
def test_other_kinds_of_things_are_one_sentence(name: str) -> None:
    build, sentence = KINDS[name]
    with pytest.raises(KindError, match=f"^{re.escape(sentence)}$"):
        build()


@pytest.mark.usefixtures("as_installed")
def test_a_flat_table_is_one_sentence() -> None:
    sentence = (
        "table: got a bool tensor of shape (3,), expected at least (queries, keys); "
        "fix: write Mask.keep_keys(tensor) for a mask of keys"
    )
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        Mask.keep(torch.ones(3, dtype=torch.bool))


LEAD = "; fix: give it size-1 axes where it is shared, for example lengths[:, None] for (batch, heads)"
MISFITS = {
    "beyond the keys": (
        Lengths(torch.tensor([3, 8])[:, None]),
        "mask.lengths: got 8, expected at most keys=7; fix: count only the keys that are there",
    ),
    "prefix beyond the keys": (
        Prefix(torch.tensor(8)),
        "mask.lengths: got 8, expected at most keys=7; fix: count only the keys that are there",
    ),
    "lengths without a place for heads": (
        Lengths(torch.tensor([3, 5])),
        "mask.lengths: got lead axes (2,), expected axes that broadcast to (2, 3)" + LEAD,
    ),
    "too many axes": (
        Lengths(torch.tensor([[[3]]])),
        "mask.lengths: got lead axes (1, 1, 1), expected axes that broadcast to (2, 3)" + LEAD,
    ),
    "centers": (
        CenteredWindow(torch.zeros(4), 1),
        "mask.center: got 4 centers, expected queries=5; fix: give one center for each query",
    ),
    "centers of others": (
        CenteredWindow(torch.zeros(7, 5), 1),
        "mask.center: got lead axes (7,), expected axes that broadcast to (2, 3)" + LEAD,
    ),
    "documents": (
        Documents(torch.zeros(6, dtype=torch.long)),
        "mask.keys: got 6 documents, expected keys=7; fix: name a document for each key",
    ),
    "documents of queries": (
        Documents(torch.zeros(7, dtype=torch.long), torch.zeros(4, dtype=torch.long)),
        "mask.queries: got 4 documents, expected queries=5; fix: name a document for each query",
    ),
    "documents of other sequences": (
        Documents(torch.zeros(7, dtype=torch.long), torch.zeros(7, 5, dtype=torch.long)),
        "mask.queries: got lead axes (7,), expected axes that broadcast to (2, 3)" + LEAD,
    ),
    "table": (
        Mask.keep(torch.ones(7, 5, dtype=torch.bool)),
        "mask.table: got (7, 5), expected (queries, keys) = (5, 7); "
        "fix: give it one row for each query and one column for each key",
    ),
    "table of others": (
        Mask.keep(torch.ones(3, 2, 5, 7, dtype=torch.bool)),
        "mask.table: got lead axes (3, 2), expected axes that broadcast to (2, 3)" + LEAD,
    ),
    "inside a composed mask": (
        ~(Causal() | (Causal() & Lengths(torch.tensor(8)))),
        "mask.lengths: got 8, expected at most keys=7; fix: count only the keys that are there",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_mask_that_does_not_fit_is_one_sentence(name: str) -> None:
    mask, sentence = MISFITS[name]
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attend(torch.ones(2, 3, 5, 11), torch.ones(2, 3, 7, 11), torch.ones(2, 3, 7, 2), mask=mask)


def test_documents_of_queries_and_keys_may_differ_in_their_lead() -> None:
    mask = Documents(torch.zeros(2, 1, 7, dtype=torch.long), torch.zeros(1, 3, 5, dtype=torch.long))
    assert mask.lead == (2, 3)


def test_more_queries_than_keys_must_name_their_documents() -> None:
    sentence = "mask.queries: got None, expected documents of 7 queries; fix: pass Documents(keys, queries)"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attend(torch.ones(7, 2), torch.ones(5, 2), torch.ones(5, 2), mask=Documents(torch.zeros(5, dtype=torch.long)))


def test_a_batch_of_none_has_no_lengths() -> None:
    nothing = torch.zeros(0, 5, 3)
    assert attend(nothing, nothing, nothing, mask=Lengths(torch.zeros(0, dtype=torch.long))).output.shape == (0, 5, 3)


@pytest.mark.parametrize("center", [float("nan"), float("inf"), -float("inf")], ids=str)
def test_a_center_that_is_no_number_sees_nothing(center: float) -> None:
    """And does not stop the others: a diverging model is for its owner to see, not for a crash."""
    centers = torch.tensor([1.0, center, 3.0])
    query, key = torch.randn(3, 5), torch.randn(7, 5)
    for backend in ("eager", "local", "stream"):
        output = attend(query, key, key, mask=CenteredWindow(centers, 1), backend=backend).output
        assert (output[1] == 0).all()
        assert (output[[0, 2]] != 0).all()


def test_a_window_is_as_wide_as_the_keys_that_a_query_sees() -> None:
    assert Window(2, 3).width == int(Window(2, 3).table(11, 11).sum(-1).max()) == 6
