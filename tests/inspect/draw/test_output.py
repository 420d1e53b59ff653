"""Files of figures, their words in both languages, and how a notebook shows them."""

import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from regard.errors import InputError
from regard.inspect.draw import fonts
from regard.inspect.draw.alignment import draw_alignment
from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.fonts import FontSet
from regard.inspect.draw.output import InlineFigure, save_figure
from regard.inspect.draw.words import CHINESE, check_language

SOURCE = Path(fonts.__file__).parents[2]


@pytest.fixture(scope="module")
def figure() -> Figure:
    return draw_alignment(np.eye(2, 3), ["word", "b", "c"], ["y", "z"], "run · layer · head 1")


def open_picture(path: Path) -> Image.Image:
    with Image.open(path) as file:
        return file.copy()


def test_a_png_is_as_large_as_its_scale_says_and_has_no_margin(figure: Figure, tmp_path: Path) -> None:
    sizes = []
    for scale in (1, 2, 3):
        save_figure(figure, tmp_path / "a.png", scale=scale)
        picture = open_picture(tmp_path / "a.png").convert("L")
        sizes.append(np.array(picture.size))
        ink = np.argwhere(np.asarray(picture) < 200)
        assert ink.min() <= 8 * scale  # the paper ends beside the ink
        assert (np.array(picture.size)[::-1] - ink.max(0) <= 14 * scale).all()
    assert np.abs(2 * sizes[0] - sizes[1]).max() <= 3
    assert np.abs(3 * sizes[0] - sizes[2]).max() <= 5


def test_paper_is_white_or_transparent(figure: Figure, tmp_path: Path) -> None:
    corners = []
    for background in ("white", "transparent"):
        save_figure(figure, tmp_path / "a.png", background=background)  # type: ignore[arg-type]
        corners.append(open_picture(tmp_path / "a.png").convert("RGBA").getpixel((0, 0)))
    assert corners[0] == (255, 255, 255, 255)
    assert corners[1][3] == 0  # type: ignore[index]


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_vectors_hold_the_title_and_equal_figures_are_equal_files(figure: Figure, tmp_path: Path, suffix: str) -> None:
    for name in ("a", "b"):
        save_figure(figure, tmp_path / f"{name}.{suffix}")
    content = (tmp_path / f"a.{suffix}").read_bytes()
    assert content == (tmp_path / f"b.{suffix}").read_bytes()
    assert b"layer" in content if suffix == "svg" else b"/Title" in content
    assert b"Type3" not in content  # many journals refuse such fonts


def test_a_scale_of_nothing_is_refused(figure: Figure, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="scale: got 0, expected a number above 0 and at most 8; fix: write 2"):
        save_figure(figure, tmp_path / "a.png", scale=0)


def test_a_notebook_shows_a_picture_without_pyplot(figure: Figure) -> None:
    assert isinstance(figure, InlineFigure)
    data, size = figure._repr_png_()
    with Image.open(BytesIO(data)) as picture:
        assert picture.width == pytest.approx(2 * size["width"], abs=2)


@pytest.mark.parametrize(
    ("largest", "expected"), [(0.9, 1.0), (0.3, 0.5), (0.02, 0.02), (0.011, 0.02), (0.0, 1.0), (7.0, 10.0)]
)
def test_weak_weights_are_seen(largest: float, expected: float) -> None:
    table = np.full((2, 2), largest)
    assert ColorScale().fit(table).bounds == (0.0, expected)
    figure = draw_alignment(table)
    assert figure.axes[0].images[0].get_clim() == (0.0, expected)


def test_chinese_words_on_request() -> None:
    figure = draw_alignment(np.eye(2), title="任意标题", language="zh")
    panel, bar = figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel(), bar.get_xlabel()) == ("键", "查询", "权重")


def test_every_fixed_word_has_its_chinese() -> None:
    """Words that code asks for are in the table, and each word of the table is asked for somewhere."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py") if path.name != "words.py")
    asked = set(re.findall(r'localize\(\s*"([^"]+)"', text))
    assert asked <= set(CHINESE)
    assert {word for word in CHINESE if f'"{word}"' not in text and f"'{word}'" not in text} == set()
    assert all(word.count("{}") == chinese.count("{}") for word, chinese in CHINESE.items())


def test_a_language_without_words_or_fonts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="language: got fr, expected en or zh; fix: write language='zh' for Chinese"):
        check_language("fr")
    monkeypatch.setattr(fonts, "findSystemFonts", list)
    monkeypatch.setattr(fonts, "find_spec", lambda name: None)
    with pytest.raises(
        InputError, match="language: got zh, expected a font with Chinese on this machine; fix: install"
    ):
        draw_alignment(np.eye(2), language="zh")


@pytest.mark.parametrize(
    ("sign", "package", "other"),
    [("🙂", "fonts-symbola", "cjk"), ("न", "fonts-noto-core", "cjk"), ("年", "fonts-noto-cjk", "symbola")],
)
def test_the_note_names_fonts_for_the_script_that_is_missing(sign: str, package: str, other: str) -> None:
    letters = FontSet(("DejaVu Sans",), frozenset(sign))
    note = letters.explain(letters.make_ticks([sign]).legend)[-1]
    assert package in note
    assert other not in note
