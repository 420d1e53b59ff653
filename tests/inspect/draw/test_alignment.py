"""The heat map of a sentence, as a picture and in a terminal."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from regard.errors import InputError
from regard.inspect.draw.alignment import draw_alignment, save_figure
from regard.inspect.draw.fonts import FontSet, choose_fonts
from regard.inspect.draw.terminal import render_heat_map

WEIGHTS = np.eye(2, 3)


def read_labels(figure: Figure) -> tuple[list[str], list[str]]:
    axes = figure.axes[0]
    figure.draw_without_rendering()
    return [text.get_text() for text in axes.get_xticklabels()], [text.get_text() for text in axes.get_yticklabels()]


def test_tokens_are_written_beside_their_rows_and_above_their_columns() -> None:
    figure = draw_alignment(WEIGHTS, ["a", " ", "$x$"], ["y", "$"], "a $ title")
    assert read_labels(figure) == (["a", "␣", "$x$"], ["y", "$"])


def test_a_token_that_no_font_can_write_is_numbered_and_the_picture_says_what_it_is() -> None:
    private = "\ue123"  # of the private use area
    assert choose_fonts([private, "a"]).missing == {private}
    figure = draw_alignment(WEIGHTS, ["a", "b", private], ["y", "z"])
    assert read_labels(figure)[0] == ["a", "b", "[1]"]
    assert figure.get_supxlabel().startswith("[1] U+E123\nnumbers stand for what no font")


def test_latin_needs_no_other_font_and_no_note() -> None:
    assert choose_fonts(["déjà vu"]) == FontSet(("DejaVu Sans",), frozenset())


@pytest.mark.parametrize(("name", "beginning"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_the_name_says_the_format(tmp_path: Path, name: str, beginning: bytes) -> None:
    save_figure(draw_alignment(WEIGHTS, ["a", "b", "c"], ["y", "z"]), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(beginning)


def test_the_text_in_an_svg_stays_text(tmp_path: Path) -> None:
    save_figure(draw_alignment(WEIGHTS, ["word", "b", "c"], ["y", "z"]), tmp_path / "a.svg")
    assert ">word</text>" in (tmp_path / "a.svg").read_text()


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        save_figure(Figure(), Path("a.doc"))
    assert str(caught.value) == "output: got a.doc, expected a name that ends in .png, .svg, .pdf; fix: write a.png"


def test_columns_that_do_not_fit_go_on_below() -> None:
    lines = str(render_heat_map([[1.0, 0.0, 0.5, 0.0, 1.0]], list("abcde"), ["x"], 9)).splitlines()
    assert lines == ["   a b c", " x ██  ▒▒", "   d e", " x   ██"]


def test_a_chinese_character_fills_its_column() -> None:
    assert str(render_heat_map([[1.0, 1.0]], ["年", "1"], ["月"], 20)).splitlines() == ["    年1", " 月 ████"]


def test_a_terminal_is_told_nothing_but_text_and_what_is_no_number_is_blank() -> None:
    lines = str(
        render_heat_map([[float("nan"), 1.0]], ["\x1b[31m", "b"], ["a very long token that has no end"], 60)
    ).splitlines()
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == " a very lon…as no end   ██"
