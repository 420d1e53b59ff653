"""Diagrams of models: every text is inside its box, in both languages, and every name is one of ours."""

import re
from inspect import signature

import pytest
import torch
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text

import regard
import regard.layers
from regard.errors import InputError
from regard.inspect.draw.diagram import Arrow, Box, Words, trace_arrow
from regard.inspect.draw.structure import STRUCTURES, draw_structure
from regard.layers import GatedHeads
from tests.inspect.draw.test_gallery import find_faults

HAN = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_nothing_overlaps_and_every_text_is_inside_its_box(name: str, language: str) -> None:
    figure = draw_structure(name, language=language)  # type: ignore[arg-type]
    assert find_faults(figure) == []
    (axes,) = figure.axes
    boxes = [patch.get_window_extent() for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    for text in filter(Text.get_text, axes.texts):
        around = text.get_window_extent()
        touched = [box for box in boxes if box.overlaps(around)]
        assert all(box.padded(1.0).contains(*around.min) and box.padded(1.0).contains(*around.max) for box in touched)


@pytest.mark.parametrize("name", STRUCTURES)
def test_chinese_diagrams_are_chinese(name: str) -> None:
    diagram = STRUCTURES[name]()
    words = [each.words for each in (*diagram.boxes.values(), *diagram.frames)]
    same = {each.english for each in words if not HAN.search(each.chinese)}
    sources = {"I", "am", "a", "student", "<s>", "softmax", "Hops", ""}
    assert {each for each in same if not each.startswith("$")} <= sources


@pytest.fixture(scope="module")
def known() -> set[str]:
    """What a reader may type: public names, parts of results, arguments of attend, layers of torch."""
    x, layer = torch.randn(2, 8, 8), GatedHeads(8, 10, heads=2, hidden=4, positions=8)
    homes = (regard, regard.layers, torch.nn, regard.layers.GatedState, layer, layer(x), regard.attend(x, x, x))
    return {name for home in homes for name in dir(home)} | set(signature(regard.attend).parameters) | {"nn", "tanh"}


@pytest.mark.parametrize("name", STRUCTURES)
def test_what_stands_below_a_part_is_its_name(name: str, known: set[str]) -> None:
    for box in STRUCTURES[name]().boxes.values():
        assert set(re.findall(r"[A-Za-z_]{2,}", box.name)) <= known


def test_arrows_end_at_the_edges_of_boxes() -> None:
    boxes = {"a": Box(Words("a"), (0.0, 0.0), size=(2.0, 1.0)), "b": Box(Words("b"), (3.0, 4.0), size=(2.0, 1.0))}
    assert trace_arrow(Arrow("a", "b", "up first"), boxes) == [(0.0, 0.5), (0.0, 4.0), (2.0, 4.0)]
    assert trace_arrow(Arrow("a", "b", "side first"), boxes) == [(1.0, 0.0), (3.0, 0.0), (3.0, 3.5)]
    assert trace_arrow(Arrow("a", "b", "around", -2.0), boxes)[-1] == (2.0, 4.0)


def test_an_unknown_structure_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"structure: got transfomer, expected one of .*; fix: write transformer"):
        draw_structure("transfomer")
