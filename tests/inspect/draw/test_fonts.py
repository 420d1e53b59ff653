"""Chinese is readable with whatever fonts there are: the system's, the extra's, or none."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context, rcParams
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.ft2font import FT2Font

from regard.inspect.draw import fonts
from regard.inspect.draw.alignment import draw_alignment
from regard.inspect.draw.arcs import draw_arcs
from regard.inspect.draw.fonts import FontSet, choose_fonts

CHINESE = ["我", "喜欢", "注意力"]
WEIGHTS = np.eye(3)


@pytest.fixture
def without_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "findSystemFonts", list)


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "find_spec", lambda name: None)


def find_unwritten(figure: Figure) -> set[str]:
    """Return the characters of a picture's text that none of its fonts has: they would be boxes."""
    figure.draw_without_rendering()
    missing = set()
    for text in figure.findobj(lambda artist: hasattr(artist, "get_fontfamily") and artist.get_visible()):
        paths = fontManager._find_fonts_by_props(FontProperties(family=text.get_fontfamily()))
        known = {chr(code) for path in paths for code in FT2Font(path).get_charmap()}
        missing |= {sign for sign in text.get_text() if not sign.isspace()} - known
    return missing


def test_boxes_are_found_where_there_are_any() -> None:
    figure = Figure()
    figure.text(0, 0, "年", fontfamily=["DejaVu Sans"])
    assert find_unwritten_quietly(figure) == {"年"}


def find_unwritten_quietly(figure: Figure) -> set[str]:
    with pytest.warns(UserWarning, match="missing from font"):
        return find_unwritten(figure)


def test_the_fonts_of_the_system_come_first() -> None:
    if not any(set("我喜欢") <= fonts.read_characters(path) for path in fonts.find_system_fonts()):
        pytest.skip("no font of this system has Chinese: install fonts-noto-cjk")
    letters = choose_fonts(CHINESE)
    assert letters.missing == frozenset()
    assert "Noto Sans SC" not in letters.families
    figure = draw_alignment(WEIGHTS, CHINESE, CHINESE, "注意力")
    assert find_unwritten(figure) == set()
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == [
        "我",
        "喜\n欢",
        "注\n意\n力",
    ]  # from top to bottom


def test_the_font_of_the_extra_is_used_where_the_system_has_none(without_system: None) -> None:
    letters = choose_fonts(CHINESE)
    assert letters == FontSet(("DejaVu Sans", "Noto Sans SC"), frozenset())
    assert find_unwritten(draw_alignment(WEIGHTS, CHINESE, CHINESE, "注意力")) == set()


def test_without_any_font_tokens_are_numbered_and_explained(without_system: None, without_extra: None) -> None:
    figure = draw_alignment(WEIGHTS, CHINESE, ["我", "a", "b"], "注意")
    assert find_unwritten(figure) == set()
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["[1]", "[2]", "[3]"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["[1]", "a", "b"]  # one token, one number
    legend = figure.get_supxlabel().replace("\n", " ")
    assert legend.startswith("[1] U+6211, [2] U+559C+6B22, [3] U+6CE8+610F+529B numbers stand ")
    assert "install fonts-noto-cjk" in legend


def test_lines_have_numbers_too(without_system: None, without_extra: None) -> None:
    assert find_unwritten(draw_arcs(WEIGHTS, CHINESE, CHINESE)) == set()


@pytest.mark.parametrize("name", ["figure.png", "figure.svg", "figure.pdf"])
def test_no_warning_of_a_missing_glyph_on_writing(without_system: None, tmp_path: Path, name: str) -> None:
    """Warnings are errors here."""
    draw_alignment(WEIGHTS, CHINESE, CHINESE, "注意力").savefig(tmp_path / name)


def test_a_file_that_is_no_font_has_no_characters(tmp_path: Path) -> None:
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    assert fonts.read_characters(tmp_path / "broken.ttf") == frozenset()


def test_figures_of_matplotlib_write_chinese() -> None:
    with rc_context({"font.family": ["sans-serif"]}):
        fonts.add_chinese_font()
        figure = Figure()
        assert len(rcParams["font.family"]) > 1
        figure.subplots().set_title("注意力 attention")
        assert not find_unwritten(figure)
