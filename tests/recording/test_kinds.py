"""What is kept answers as the written weights would."""

import pytest
import torch

from regard import InputError
from regard.recording import Difference, Factored, Factors, Overview, Sketch, Whole
from tests.recording.made import H, L, S, factored, factors, sketch_of, weights


def test_tiles_of_factors_are_the_weights() -> None:
    own, table = factors()
    seen = Factored(sketch_of(table), own)
    torch.testing.assert_close(seen.dense(), table)
    torch.testing.assert_close(seen.tile(3, slice(1, 4), slice(2, 6)), table[3, 1:4, 2:6])
    torch.testing.assert_close(seen.tile(None, slice(1, 4)), table[:, 1:4].mean(0))


def test_an_empty_row_has_no_weight() -> None:
    own, _ = factors(reach=-2)
    table = Factored(sketch_of(weights()), own).dense()
    assert table[:, :2].eq(0).all()
    torch.testing.assert_close(table[:, 2:].sum(-1), torch.ones(H, L - 2))


@pytest.mark.parametrize("how", ["mean", "max"])
def test_a_picture_is_a_pooled_table(how: str) -> None:
    table = weights()
    seen = Whole(table)
    small = seen.picture(1, slice(1, 5), slice(1, 7), size=(2, 3), how=how)  # type: ignore[arg-type]
    cells = table[1, 1:5, 1:7].reshape(2, 2, 3, 2)
    torch.testing.assert_close(small, cells.mean((1, 3)) if how == "mean" else cells.amax((1, 3)))


def test_a_picture_in_bands_is_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Whole(weights())
    once = seen.picture(size=(3, 4))
    monkeypatch.setattr("regard.recording.seen.ENOUGH", 1)
    torch.testing.assert_close(seen.picture(size=(3, 4)), once)


def test_a_coarse_picture_of_factors_comes_from_the_overview_and_a_fine_one_from_the_weights() -> None:
    own, table = factors()
    marked = sketch_of(table)
    assert marked.overview is not None
    overview = Overview(marked.overview.mean + 5, marked.overview.peak, marked.overview.step)
    seen = Factored(Sketch(marked.spread, marked.mass, marked.largest, marked.places, overview), own)
    assert seen.picture(0, size=(2, 2)).min() > 4
    torch.testing.assert_close(seen.picture(0, size=(5, 7)), table[0])


def test_a_sketch_without_an_overview_shows_its_largest_weights() -> None:
    table = weights()
    full = sketch_of(table, k=S)
    seen = Sketch(full.spread, full.mass, full.largest, full.places)
    torch.testing.assert_close(seen.picture(2, size=(L, S)), table[2])
    torch.testing.assert_close(seen.picture(size=(L, S), how="max"), table.mean(0))
    torch.testing.assert_close(seen.picture(1, slice(1, 5), slice(0, 6), size=(2, 3)), _cells(table[1, 1:5, :6]))


def _cells(table: torch.Tensor) -> torch.Tensor:
    return table.reshape(2, 2, 3, 2).mean((1, 3))


def test_a_sketch_has_no_single_weights() -> None:
    expected = (
        "tile: got an attention kept as statistics, expected an attention of which all weights or factors were kept; "
        "fix: observe with a larger limit, or fewer sites"
    )
    with pytest.raises(InputError) as raised:
        sketch_of(weights()).dense()
    assert str(raised.value) == expected
    with pytest.raises(InputError, match=r"^k: got 3, expected 1 … 2; fix: ask for no more than were kept$"):
        sketch_of(weights()).top(3)


def test_a_difference_is_the_second_less_the_first() -> None:
    one, other = weights(), weights(1)
    change = Difference(Whole(one), Whole(other))
    torch.testing.assert_close(change.dense(), other - one)
    torch.testing.assert_close(change.received(), (other - one).sum(-2))
    torch.testing.assert_close(change.entropy(), Whole(other).entropy() - Whole(one).entropy())
    largest = change.top(2).weights
    torch.testing.assert_close(largest.abs(), (other - one).abs().topk(2).values)
    torch.testing.assert_close((other - one).gather(-1, change.top(2).keys), largest)


@pytest.mark.usefixtures("as_installed")
def test_parts_that_do_not_belong_together_are_refused() -> None:
    own, _ = factors()
    with pytest.raises(InputError, match=r"^second: got \(1, 2, 2\), expected \(4, 5, 7\)"):
        Difference(Whole(weights()), Whole(torch.eye(2)[None]))
    with pytest.raises(InputError, match=r"^total: got"):
        Factors(own.query, own.key, own.total[:, :2])
    with pytest.raises(InputError, match=r"^bias: got"):
        Factors(own.query, own.key, own.total, torch.zeros(3, 1, 1))
    with pytest.raises(InputError, match=r"^query and key: got"):
        Factors(own.query[:3], own.key, own.total[:3])
    with pytest.raises(InputError, match=r"^factors: got \(4, 5, 7\), expected \(4, 7, 5\)"):
        Factored(sketch_of(weights().mT.contiguous()), own)
    with pytest.raises(InputError, match=r"^head: got 4, expected 0 … 3"):
        factored().tile(4)
    with pytest.raises(InputError, match=r"^rows: got slice\(5, 9, None\), expected some of 0 … 4"):
        factored().tile(0, slice(5, 9))
