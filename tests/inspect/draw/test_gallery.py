"""Figures as a reader of a paper sees them: nothing overlaps, nothing is cut, and all looks as it did."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from regard.inspect.draw import fonts
from regard.inspect.draw.alignment import draw_alignment
from tests.inspect.draw.gallery import CASES, FIGURES, REFERENCES, SAMPLES, Sample, compare, rasterize

MEAN, CLEAR = 0.012, 0.01  # two versions of matplotlib may differ by so much


@pytest.fixture(autouse=True)
def _same_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "findSystemFonts", list)


def find_texts(axes: Axes) -> Iterator[Text]:
    """Yield what is written in and beside axes."""
    yield from (*axes.texts, axes.title)
    if (key := axes.get_legend()) is not None:
        yield from key.get_texts()
    for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
        yield axis.label
        yield from chain.from_iterable((tick.label1, tick.label2) for tick in axis._update_ticks())


def measure_texts(figure: Figure) -> dict[str, Bbox]:
    """Return the place of every text that is seen, by what it says and a number."""
    texts = chain(figure.texts, *(find_texts(axes) for axes in figure.axes))
    seen = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return {f"{text.get_text()} #{number}": text.get_window_extent() for number, text in enumerate(seen)}


def do_overlap(first: Bbox, second: Bbox) -> bool:
    """Return whether two boxes share more than the edge of a pixel."""
    common = Bbox.intersection(first, second)
    return common is not None and min(common.width, common.height) > 1.0


def find_faults(figure: Figure) -> list[str]:
    """Return what a reader would complain about: text over text, over panels or beyond the paper; panels in panels."""
    figure.draw_without_rendering()
    texts = measure_texts(figure)
    panels = [axes.get_window_extent() for axes in figure.axes if axes.axison or axes.images]
    names, boxes = list(texts), list(texts.values())
    faults = [
        f"{names[i]!r} over {names[j]!r}" for i in range(len(boxes)) for j in range(i) if do_overlap(boxes[i], boxes[j])
    ]
    faults += [f"{name!r} in a panel" for name, box in texts.items() for panel in panels if do_overlap(box, panel)]
    faults += ["panels overlap" for i in range(len(panels)) for j in range(i) if do_overlap(panels[i], panels[j])]
    paper = figure.bbox.padded(0.5)
    outside = [name for name, box in texts.items() if not (paper.contains(*box.min) and paper.contains(*box.max))]
    return faults + [f"{name!r} is cut" for name in outside]


def has_scale(figure: Figure) -> bool:
    """Return whether a figure says what its colors, lines or marks mean."""
    return any(axes.get_label() == "<colorbar>" or axes.get_legend() is not None for axes in figure.axes)


@pytest.mark.parametrize(("name", "kind", "sample"), CASES, ids=[f"{name}-{kind}" for name, kind, _ in CASES])
def test_figure(name: str, kind: str, sample: Sample) -> None:
    """Warnings are errors, so that a missing glyph is one, too."""
    figure = FIGURES[name](sample)
    assert find_faults(figure) == []
    assert has_scale(figure)
    assert " ".join(figure.get_suptitle().split()) == sample.title
    picture = rasterize(figure)
    assert (np.asarray(picture).min(-1) < 160).mean() > 0.005  # ink
    with Image.open(REFERENCES / f"{name}-{kind}.png") as reference:
        mean, clear = compare(picture, reference.convert("RGB"))
    assert mean <= MEAN
    assert clear <= CLEAR


def test_a_change_that_people_see_is_noticed() -> None:
    """The tolerance is for fonts, not for other weights, a missing title or names, or another scale."""
    sample = SAMPLES["latin"]
    weights = sample.make_weights()[-1]
    with Image.open(REFERENCES / "alignment-latin.png") as file:
        reference = file.convert("RGB")
    for change in (
        draw_alignment(weights[::-1], sample.keys, sample.queries, sample.title),
        draw_alignment(weights, sample.keys, sample.queries),
        draw_alignment(weights, sample.keys, sample.queries, sample.title, names=("", "")),
        draw_alignment(weights / 9, sample.keys, sample.queries, sample.title.replace("head 1", "head 10")),
    ):
        mean, clear = compare(rasterize(change), reference)
        assert mean > MEAN or clear > CLEAR


def test_faults_are_found() -> None:
    figure = Figure(figsize=(2, 2))
    axes = figure.add_axes((0.2, 0.2, 0.6, 0.6))
    figure.text(0.5, 0.5, "over the panel")
    figure.text(0.52, 0.5, "over the other")
    figure.text(0.9, 0.05, "beyond the edge")
    axes.set(xticks=[], yticks=[])
    assert len(find_faults(figure)) == 6
    assert not has_scale(figure)


def test_reference_pictures_are_small() -> None:
    assert sum(path.stat().st_size for path in REFERENCES.iterdir()) < 300_000
    assert {path.stem for path in REFERENCES.iterdir()} == {f"{name}-{kind}" for name, kind, _ in CASES}
