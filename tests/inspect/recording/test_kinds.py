"""What is kept answers as the written weights would."""

import pytest
import torch

from regard import InputError
from regard.inspect.recording import DenseMap, Difference, FactoredMap, Factors, PooledMap, Sketch
from tests.inspect.recording.made import H, L, S, make_factored, make_factors, sketch_weights, weights


def test_tiles_of_factors_are_the_weights() -> None:
    own, table = make_factors()
    seen = FactoredMap(sketch_weights(table), own)
    torch.testing.assert_close(seen.dense(), table)
    torch.testing.assert_close(seen.tile(3, slice(1, 4), slice(2, 6)), table[3, 1:4, 2:6])
    torch.testing.assert_close(seen.tile(None, slice(1, 4)), table[:, 1:4].mean(0))


def test_an_empty_row_has_no_weight() -> None:
    own, _ = make_factors(reach=-2)
    table = FactoredMap(sketch_weights(weights()), own).dense()
    assert table[:, :2].eq(0).all()
    torch.testing.assert_close(table[:, 2:].sum(-1), torch.ones(H, L - 2))


@pytest.mark.parametrize("how", ["mean", "max"])
def test_a_picture_is_a_pooled_table(how: str) -> None:
    table = weights()
    seen = DenseMap(table)
    small = seen.downsample(1, slice(1, 5), slice(1, 7), size=(2, 3), how=how)  # type: ignore[arg-type]
    cells = table[1, 1:5, 1:7].reshape(2, 2, 3, 2)
    torch.testing.assert_close(small, cells.mean((1, 3)) if how == "mean" else cells.amax((1, 3)))


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("enough", [1, 2 * S])
def test_a_picture_in_bands_is_the_picture(monkeypatch: pytest.MonkeyPatch, enough: int, how: str) -> None:
    seen = DenseMap(weights())
    once = seen.downsample(size=(2, 4), how=how)  # type: ignore[arg-type]
    monkeypatch.setattr("regard.inspect.recording.attention_map.BLOCK_WEIGHTS", enough)
    torch.testing.assert_close(seen.downsample(size=(2, 4), how=how), once)  # type: ignore[arg-type]


def make_claiming(size: int) -> FactoredMap:
    """Return factors that take little and stand for `size` × `size` weights."""
    column, one = torch.zeros(1, size), torch.ones(1, size, 1)
    sketch = Sketch(column, column, one, torch.zeros(1, size, 1, dtype=torch.int32))
    return FactoredMap(sketch, Factors(one, one, column))


def test_a_file_that_claims_much_takes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, largest = make_claiming(2**22), []
    original = Factors.tile

    def watch_call(self: Factors, head: int, rows: slice, columns: slice) -> torch.Tensor:
        largest.append((rows.stop - rows.start) * (columns.stop - columns.start))
        return original(self, head, rows, columns)

    monkeypatch.setattr(Factors, "tile", watch_call)
    assert seen.downsample(size=(2, 2), how="max").shape == (2, 2)
    assert not largest  # too many to be computed: the largest weights that were kept are all there is
    assert seen.downsample(0, slice(0, 9), size=(1, 2), how="max").shape == (1, 2)
    assert max(largest) <= 2**22
    with pytest.raises(InputError, match=r"^top: got \(1, 4194304, 4194304\) weights, expected at most 8,589,934,592"):
        Difference(seen, seen).top(1)


def test_many_heads_share_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    spread, largest = torch.zeros(97, 5), torch.full((97, 5, 1), 0.5)
    seen = Sketch(spread, spread, largest, torch.zeros(97, 5, 1, dtype=torch.int32))
    made, original = [], torch.Tensor.new_zeros

    def watch_call(self: torch.Tensor, *size: int) -> torch.Tensor:
        made.append(original(self, *size))
        return made[-1]

    monkeypatch.setattr(torch.Tensor, "new_zeros", watch_call)
    picture = seen.downsample(size=(5, 5), how="max")
    assert [table.numel() for table in made] == [25]  # 97 side by side would be as many times as large
    torch.testing.assert_close(picture[:, 0], torch.full((5,), 0.5))
    assert picture[:, 1:].eq(0).all()


def test_a_difference_of_a_fine_and_a_coarse_picture_has_the_fine_cells() -> None:
    table = weights()
    change = Difference(DenseMap(table), sketch_weights(table)).downsample(1, size=(L, S))
    assert change.shape == (L, S)
    coarse = sketch_weights(table).downsample(1, size=(L, S))
    torch.testing.assert_close(change[0, 0], coarse[0, 0] - table[1, 0, 0])
    torch.testing.assert_close(change[-1, -1], coarse[-1, -1] - table[1, -1, -1])


def test_a_coarse_picture_of_factors_comes_from_the_overview_and_a_fine_one_from_the_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, table = make_factors()
    marked = sketch_weights(table)
    assert marked.overview is not None
    overview = PooledMap(marked.overview.mean + 5, marked.overview.peak, marked.overview.step)
    seen = FactoredMap(Sketch(marked.entropies, marked.mass, marked.largest, marked.indices, overview), own)
    assert seen.downsample(0, size=(2, 2)).min() > 4
    torch.testing.assert_close(seen.downsample(0, size=(5, 7)), table[0])
    assert seen.downsample(0, size=(5, 4)).max() < 4
    monkeypatch.setattr(
        "regard.inspect.recording.factors.INTERACTIVE_WEIGHTS", 1
    )  # as if these were too many to be waited for
    assert seen.downsample(0, size=(5, 4)).min() > 4  # an overview of more than half the cells will do


def test_a_sketch_without_an_overview_shows_its_largest_weights() -> None:
    table = weights()
    full = sketch_weights(table, k=S)
    seen = Sketch(full.entropies, full.mass, full.largest, full.indices)
    torch.testing.assert_close(seen.downsample(2, size=(L, S)), table[2])
    torch.testing.assert_close(seen.downsample(size=(L, S), how="max"), table.mean(0))
    torch.testing.assert_close(
        seen.downsample(1, slice(1, 5), slice(0, 6), size=(2, 3)), _count_cells(table[1, 1:5, :6])
    )


def _count_cells(table: torch.Tensor) -> torch.Tensor:
    return table.reshape(2, 2, 3, 2).mean((1, 3))


def test_a_sketch_has_no_single_weights() -> None:
    expected = (
        "tile: got an attention kept as statistics, expected an attention of which all weights or factors were kept; "
        "fix: observe with a larger limit, or fewer sites"
    )
    with pytest.raises(InputError) as raised:
        sketch_weights(weights()).dense()
    assert str(raised.value) == expected
    with pytest.raises(InputError, match=r"^k: got 3, expected 1 … 2; fix: ask for no more than were kept$"):
        sketch_weights(weights()).top(3)


def test_a_difference_is_the_second_less_the_first() -> None:
    one, other = weights(), weights(1)
    change = Difference(DenseMap(one), DenseMap(other))
    torch.testing.assert_close(change.dense(), other - one)
    torch.testing.assert_close(change.received_weight(), (other - one).sum(-2))
    torch.testing.assert_close(change.entropy(), DenseMap(other).entropy() - DenseMap(one).entropy())
    largest = change.top(2).weights
    torch.testing.assert_close(largest.abs(), (other - one).abs().topk(2).values)
    torch.testing.assert_close((other - one).gather(-1, change.top(2).keys), largest)


@pytest.mark.usefixtures("as_installed")
def test_parts_that_do_not_belong_together_are_refused() -> None:
    own, _ = make_factors()
    with pytest.raises(InputError, match=r"^second: got \(1, 2, 2\), expected \(4, 5, 7\)"):
        Difference(DenseMap(weights()), DenseMap(torch.eye(2)[None]))
    with pytest.raises(InputError, match=r"^total: got"):
        Factors(own.query, own.key, own.total[:, :2])
    with pytest.raises(InputError, match=r"^bias: got"):
        Factors(own.query, own.key, own.total, torch.zeros(3, 1, 1))
    with pytest.raises(InputError, match=r"^query and key: got"):
        Factors(own.query[:3], own.key, own.total[:3])
    with pytest.raises(InputError, match=r"^factors: got \(4, 5, 7\), expected \(4, 7, 5\)"):
        FactoredMap(sketch_weights(weights().mT.contiguous()), own)
    with pytest.raises(InputError, match=r"^head: got 4, expected 0 … 3"):
        make_factored().tile(4)
    with pytest.raises(InputError, match=r"^rows: got slice\(5, 9, None\), expected some of 0 … 4"):
        make_factored().tile(0, slice(5, 9))
