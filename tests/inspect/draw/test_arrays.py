"""Every drawing function takes what people have: weights of a call, tensors with gradients, arrays, lists."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from regard import attend
from regard.errors import InputError, KindError
from regard.inspect.draw.alignment import draw_alignment, save_figure
from regard.inspect.draw.arcs import draw_arcs
from regard.inspect.draw.arrays import to_array
from regard.inspect.draw.glimpses import draw_glimpses
from regard.inspect.draw.head_grid import draw_head_grid
from regard.inspect.draw.overlay import draw_overlay
from regard.inspect.draw.positions import draw_positions
from regard.inspect.draw.regression import draw_regression
from regard.inspect.draw.spectrogram import draw_spectrogram
from regard.inspect.draw.terminal import render_heat_map
from regard.inspect.recording import Recording

QUERIES, KEYS = 3, 4
X = torch.linspace(-2, 2, KEYS * 5).view(1, KEYS, 5).requires_grad_()
WEIGHTS = attend(X[:, :QUERIES], X, X).weights
TABLE = WEIGHTS.dense()
PICTURE, LINE = np.zeros((8, 8, 3), dtype=np.uint8), torch.arange(4.0)

FORMS: dict[str, Any] = {
    "weights": WEIGHTS,
    "with a gradient": TABLE,
    "bfloat16": TABLE.bfloat16(),
    "numpy": TABLE.detach().numpy()[0],
    "list": TABLE[0].tolist(),
    "recorded": Recording.from_weights({"map": TABLE[0].tolist()})["map"],
}
DRAWINGS: dict[str, Callable[[Any], Any]] = {
    "alignment": draw_alignment,
    "arcs": draw_arcs,
    "glimpses": lambda weights: draw_glimpses(LINE.view(2, 2), to_array("weights", weights, 2).reshape(1, 3, 2, 2)),
    "heads": lambda weights: draw_head_grid({"layer": weights}),
    "heads of one layer": draw_head_grid,
    "overlay": lambda weights: draw_overlay(PICTURE, weights, ["a", "b", "c"]),
    "positions": draw_positions,
    "regression": lambda weights: draw_regression((LINE, LINE), LINE[:3], LINE[:3], {"fit": (LINE[:3], weights)}),
    "spectrogram": lambda weights: draw_spectrogram(torch.ones(2, 9), weights, ["a", "b", "c"]),
    "terminal": lambda weights: render_heat_map(weights, list("abcd"), list("xyz"), 40),
}


@pytest.mark.parametrize("drawing", DRAWINGS)
def test_every_drawing_takes_every_form(drawing: str) -> None:
    drawn = [DRAWINGS[drawing](form) for form in FORMS.values()]
    if isinstance(drawn[0], Figure):
        pictures = [[image.get_array() for axes in figure.axes for image in axes.images] for figure in drawn]
        assert all(np.allclose(a, b, atol=0.02) for other in pictures for a, b in zip(pictures[0], other, strict=True))
    else:
        assert all(str(other) == str(drawn[0]) for other in drawn)


def test_a_batch_is_no_table_and_words_are_no_numbers() -> None:
    fix = "take one head of one item, such as weights[0, 2]"
    with pytest.raises(InputError) as caught:
        draw_alignment(np.ones((2, 3, 4)))
    assert str(caught.value) == f"weights: got 2 × 3 × 4, expected queries × keys, none of them 0; fix: {fix}"
    for broken in (["a", "b"], [[1.0], [1.0, 2.0]]):
        with pytest.raises(KindError) as wrong:
            draw_alignment(broken)
        assert str(wrong.value) == (
            "weights: got a list, expected an array, a tensor, the weights of a call, or a list of numbers; "
            "fix: pass result.weights, or an array of numbers"
        )


def test_a_path_may_be_text(tmp_path: Path) -> None:
    save_figure(draw_alignment(WEIGHTS), str(tmp_path / "a.png"))
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
