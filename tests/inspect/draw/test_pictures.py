"""Pictures, by what is in them."""

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from regard.errors import InputError
from regard.inspect.draw.alignment import draw_alignment
from regard.inspect.draw.arcs import draw_arcs
from regard.inspect.draw.axes import MOST, pool_largest
from regard.inspect.draw.head_grid import draw_head_grid
from regard.inspect.draw.overlay import draw_overlay
from regard.inspect.draw.positions import draw_positions
from regard.inspect.draw.spectrogram import draw_spectrogram
from regard.layers.positions import sinusoids


def table(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    weights = np.random.default_rng(seed).random((rows, columns))
    return weights / weights.sum(1, keepdims=True)


def read_cells(figure: Figure, place: int = 0) -> np.ndarray:
    return np.asarray(figure.axes[place].images[0].get_array())


@pytest.mark.parametrize(("rows", "columns"), [(1, 7), (7, 1), (1, 1), (200, 200), (3, 5)])
def test_every_weight_is_in_its_cell(rows: int, columns: int) -> None:
    weights = table(rows, columns)
    figure = draw_alignment(weights)
    figure.draw_without_rendering()
    assert (read_cells(figure) == weights).all()
    assert max(figure.get_size_inches()) <= 41


def test_two_hundred_tokens_are_all_written() -> None:
    tokens = [f"t{place}" for place in range(200)]
    figure = draw_alignment(table(200, 200), tokens, tokens)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == tokens


def test_an_empty_row_and_what_is_no_number_are_white() -> None:
    figure = draw_alignment(np.array([[0.0, 0.0], [np.nan, np.inf]]), ["a", "b"], ["c", "d"])
    assert (read_cells(figure) == 0).all()


def test_a_single_sharp_weight_survives_pooling() -> None:
    weights = np.zeros((2500, 3000))
    weights[2499, 1234] = 0.75
    small, step = pool_largest(weights)
    assert step == (3, 3)
    assert max(small.shape) <= MOST
    assert small[2499 // 3, 1234 // 3] == 0.75
    assert np.count_nonzero(small) == 1
    figure = draw_alignment(weights)
    assert "each cell is the largest of several" in figure.get_supxlabel()
    left, right, bottom, top = figure.axes[0].images[0].get_extent()
    assert (left, right, bottom, top) == (-0.5, 2999.5, 2499.5, -0.5)


def test_long_tokens_are_cut_where_they_differ_least_and_arabic_stays_whole() -> None:
    figure = draw_alignment(table(1, 3), ["x" * 50 + "1", "x" * 50 + "2", "السلام"], ["q"])
    cut = "x" * 10 + "…" + "x" * 8
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == [f"{cut}1", f"{cut}2", "السلام"]


def test_positions_and_heads_count_from_zero_as_in_python() -> None:
    axes = draw_alignment(table(2, 3)).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["0", "1"]
    grid = draw_head_grid(np.stack([table(2, 3)] * 3))
    assert [text.get_text() for text in grid.texts if text.get_text().isdigit()] == ["0", "1", "2"]


def test_labels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        draw_alignment(table(2, 3), ["a"], ["b", "c"])
    expected = "source: got 1 labels, expected 3, one for each; fix: give a label to every position"
    assert str(caught.value) == expected


def test_a_table_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"^weights: got 0 × 3, expected queries × keys"):
        draw_alignment(np.zeros((0, 3)))


def test_the_grid_has_each_head_in_its_place() -> None:
    layers = {"one": np.stack([table(3, 4, seed) for seed in range(2)]), "two": table(5, 5, 9)[None]}
    figure = draw_head_grid(layers)
    shown = [axes for axes in figure.axes if axes.images and axes.get_visible() and axes.get_label() != "<colorbar>"]
    assert [axes.images[0].get_array().shape for axes in shown] == [(3, 4), (3, 4), (5, 5)]
    assert (shown[1].images[0].get_array() == layers["one"][1]).all()
    assert [axes.get_ylabel() for axes in shown] == ["one", "", "two"]


def test_lines_join_what_looks_with_what_is_looked_at() -> None:
    weights = np.array([[0.0, 0.9, 0.1], [0.5, 0.0, 0.01]])
    figure = draw_arcs(weights, ["a", "b"], ["x", "y", "z"])
    (lines,) = figure.axes[0].findobj(PathCollection)
    ends = [(path.vertices[0].tolist(), path.vertices[-1].tolist()) for path in lines.get_paths()]
    assert ends == [([0, 0], [1, 2]), ([0, 1], [1, 0]), ([0, 0], [1, 1])]  # thickest last
    widths = lines.get_linewidth()
    assert list(widths) == sorted(widths)
    assert {text.get_text() for text in figure.axes[0].texts} == {*"abxyz", "query", "key"}


def test_a_picture_is_bright_where_it_was_looked_at() -> None:
    weights = np.array([[0.0, 0.5, 0.0, 0.0, 0.0, 0.0], np.full(6, 1 / 6)])
    figure = draw_overlay(np.full((8, 9, 3), 200, np.uint8), weights, ["up", "all"], grid=(2, 3))
    _, first, second = (np.asarray(axes.images[0].get_array())[..., 0] for axes in figure.axes[:3])
    assert (first[:4, 3:6] == 200).all()
    assert np.count_nonzero(first > 60) == 12
    assert (second == 200).all()
    assert [axes.get_title() for axes in figure.axes[1:3]] == ["up  0.50", "all  0.17"]


def test_regions_that_do_not_fill_the_picture_are_refused() -> None:
    with pytest.raises(InputError, match="expected a row for each word over a grid of 2 × 3; fix"):
        draw_overlay(np.zeros((8, 8, 3), np.uint8), table(1, 4), ["a"], grid=(2, 3))


def test_sound_and_attention_share_their_time() -> None:
    values = table(5, 100)
    figure = draw_spectrogram(values, table(3, 25), ["a", "年", "c"], seconds=2.5)
    above, below = figure.axes[:2]
    assert above.images[0].get_extent()[:2] == below.images[0].get_extent()[:2] == [0, 2.5]
    assert above.images[0].origin == "lower"
    assert (read_cells(figure, 0) == values).all()


def test_positions_that_are_alike_have_a_cosine_of_one() -> None:
    angles = np.outer(np.arange(7), [1.0, 0.1])
    encoding = np.concatenate([np.sin(angles), np.cos(angles)], 1)
    figure = draw_positions(encoding)
    alike = read_cells(figure, 3)
    expected = np.cos(angles[:, None] - angles).mean(-1)  # sin·sin + cos·cos, over two frequencies
    assert alike == pytest.approx(expected)
    assert (read_cells(figure) == encoding).all()


def test_curves_of_positions_vary_each_at_its_own_frequency() -> None:
    """Of 64 dimensions of 60 positions, sine and cosine have the same frequency, and most hardly change."""
    encoding = sinusoids(60, 64).numpy()
    figure = draw_positions(encoding)
    chosen = [int(text.get_text()) for text in figure.axes[2].get_yticklabels()]
    assert len(chosen) == 4
    turns = [int(np.count_nonzero(np.diff(np.sign(np.diff(encoding[:, place]))))) for place in chosen]
    assert turns == sorted(set(turns), reverse=True)  # all different
    assert min(np.ptp(encoding[:, chosen], axis=0)) > 0.5
