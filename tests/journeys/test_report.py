"""A report opened from disk in a real browser, as somebody who was sent it would."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from regard.inspect.draw.chapters import Chapter, Regions, Spectrogram
from regard.inspect.draw.colors import build_palette
from regard.inspect.draw.report import render_report
from regard.inspect.recording import Recording

SOURCE = ["the", "<script>window.hacked = 1</script>", "年", "שלום", "</s>"]
TARGET = ["le", "<img src=x onerror=hack()>", "月"]
H = 2


def weights(seed: int, queries: int, keys: int) -> torch.Tensor:
    scores = torch.randn(H, queries, keys, generator=torch.Generator().manual_seed(seed))
    return (2 * scores).softmax(-1)


def hypothesis(seed: int, target: list[str]) -> Recording:
    own = Recording.from_weights({"encoder 1": weights(0, 5, 5)}, queries=SOURCE, keys=SOURCE)
    looks = {f"decoder {layer}": weights(seed + layer, len(target), 5) for layer in (1, 2)}
    return own.merge(Recording.from_weights(looks, queries=target, keys=SOURCE))


@pytest.fixture
def opened(tmp_path: Path, watched: Any) -> Callable[..., Page]:
    """Writes a report, opens it, and waits until it is drawn."""

    def open_it(chapters: list[Chapter], title: str = "a report", **options: Any) -> Page:
        (tmp_path / "report.html").write_text(render_report(chapters, title, **options), encoding="utf-8")
        watched.page.goto((tmp_path / "report.html").as_uri())
        watched.page.wait_for_selector("#report[data-ready]")
        return watched.page

    return open_it


@pytest.fixture
def sentence(opened: Callable[..., Page]) -> Page:
    chapters = [Chapter("le 月", hypothesis(10, TARGET), -0.25), Chapter("la", hypothesis(20, TARGET[:2]), -1.5)]
    return opened(chapters, "the <b>年</b>")


def pixels(page: Page) -> str:
    """The heat map as it is painted now."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return str(page.evaluate("() => document.querySelector('.regard-heatmap-canvas').toDataURL()"))


def hover(page: Page, row: int, column: int) -> tuple[str, list[int]]:
    """Points at a cell; what is said there, and the color of that place."""
    canvas = page.locator(".regard-heatmap-canvas")
    box = canvas.bounding_box()
    assert box is not None
    x, y = canvas.evaluate("(canvas, [row, column]) => canvas.map.centerOf(row, column)", [row, column])
    color = canvas.evaluate(
        """(canvas, place) => {
          const [x, y] = place.map((at) => at * canvas.width / canvas.clientWidth);
          return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data];
        }""",
        [x, y],
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    tip = page.locator(".regard-tip")
    expect(tip).to_be_visible()
    expect(tip).to_have_text(re.compile(r": [\d.e−+]+$"))
    return tip.inner_text(), color


def test_it_opens_without_network_and_without_complaint(sentence: Page, watched: Any) -> None:
    assert [url.split(":")[0] for url in watched.requests] == ["file"]
    expect(sentence.get_by_role("heading", level=1)).to_have_text("the <b>年</b>")
    policy = sentence.locator("meta[http-equiv]").get_attribute("content")
    assert policy is not None
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


def test_hovering_tells_the_exact_weight(sentence: Page) -> None:
    sentence.get_by_role("combobox", name="Head", exact=True).select_option(label="2")
    pixels(sentence)
    text, color = hover(sentence, 2, 1)
    exact = weights(12, 3, 5)[1, 2, 1].item()  # layer 2 of the first hypothesis
    assert np.float32(float(text.rpartition(": ")[2])) == np.float32(exact)  # all bits
    assert color == [*build_palette("weights")[round(255 * exact)].tolist(), 255]
    assert text.startswith("月 → <script>window.hacked␣=␣1</script>: ")


def test_labels_are_text_whatever_they_say(sentence: Page) -> None:
    assert sentence.evaluate("() => window.hacked") is None
    assert sentence.locator("main img").count() == 0
    expect(sentence.get_by_role("group", name="said: tokens").get_by_role("button").nth(1)).to_have_text(
        "<img␣src=x␣onerror=hack()>"
    )


def test_layers_heads_and_hypotheses_change_the_picture(sentence: Page) -> None:
    seen = [pixels(sentence)]
    for name, label in (("Head", "1"), ("Head", "2"), ("Layer", "decoder 1"), ("Layer", "encoder 1")):
        sentence.get_by_role("combobox", name=name, exact=True).select_option(label=label)
        seen.append(pixels(sentence))
    sentence.get_by_role("combobox", name="Layer", exact=True).select_option(label="decoder 2")
    sentence.get_by_role("button", name="la (score −1.50)").click()
    seen.append(pixels(sentence))
    assert [seen.index(picture) for picture in seen] == [0, 1, 2, 3, 4, 5]


def test_a_small_picture_of_a_head_shows_it(sentence: Page) -> None:
    sentence.get_by_role("button", name="decoder 1, head 2").click()
    expect(sentence.get_by_role("combobox", name="Layer", exact=True)).to_have_value("1")
    expect(sentence.get_by_role("combobox", name="Head", exact=True)).to_have_value("1")
    sentence.keyboard.press("ArrowLeft")
    expect(sentence.get_by_role("combobox", name="Head", exact=True)).to_have_value("0")
    expect(sentence.get_by_role("button", name="decoder 1, head 1")).to_be_focused()


def test_colors_by_row_make_each_rows_largest_the_darkest(sentence: Page) -> None:
    before = pixels(sentence)
    sentence.get_by_role("combobox", name="Colors", exact=True).select_option(value="row")
    assert pixels(sentence) != before
    darkest = tuple(build_palette("weights")[-1].tolist())
    colors = sentence.evaluate(
        """() => { const canvas = document.querySelector(".regard-grid button[aria-pressed=true] canvas");
          const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          return [canvas.width, Array.from(bytes)]; }"""
    )
    table = np.array(colors[1]).reshape(3, colors[0], 4)[..., :3]
    mean = weights(12, 3, 5).mean(0)
    for row, largest in enumerate(mean.argmax(1).tolist()):
        assert tuple(table[row, largest].tolist()) == darkest


def test_a_threshold_hides_what_is_less(sentence: Page) -> None:
    sentence.get_by_role("slider", name="Hide below").fill("1")
    pixels(sentence)  # waits until it is painted
    painted = sentence.evaluate(
        """() => { const canvas = document.querySelector(".regard-grid button canvas");
          return [...new Set(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data)]; }"""
    )
    assert painted == [255]  # all white


def test_a_token_shows_where_it_looked(sentence: Page) -> None:
    sentence.get_by_role("group", name="said: tokens").get_by_role("button").nth(2).click()
    expect(sentence.get_by_text("Where “月” looks")).to_be_visible()
    first = sentence.get_by_role("group", name="read: tokens").get_by_role("button").first
    label = first.get_attribute("aria-label")
    assert label is not None
    assert np.float32(float(label.removeprefix("the "))) == pytest.approx(
        weights(12, 3, 5).mean(0)[2, 0].item(), rel=1e-6
    )


def test_everything_by_keyboard(sentence: Page) -> None:
    canvas = sentence.get_by_role(
        "application", name=re.compile("decoder 2, mean of heads: heat map, 3 queries by 5 keys")
    )
    canvas.focus()
    sentence.keyboard.press("ArrowRight")
    sentence.keyboard.press("ArrowDown")
    expect(sentence.get_by_role("status")).to_have_text(re.compile(r"^<img.*→ the: 0\.\d+$"))
    before = pixels(sentence)
    for key in ("+", "+", "+", "+", "Shift+ArrowRight"):
        sentence.keyboard.press(key)
    assert pixels(sentence) != before
    sentence.keyboard.press("0")
    assert pixels(sentence) == before
    sentence.keyboard.press("Enter")
    expect(sentence.get_by_text("Where “<img␣src=x␣onerror=hack()>” looks")).to_be_visible()


def test_lines_are_drawn_from_tokens_to_what_they_look_at(sentence: Page) -> None:
    sentence.get_by_role("button", name="Lines").click()
    expected = int((weights(12, 3, 5).mean(0) >= 0.02).sum())
    expect(sentence.locator(".regard-arcs path")).to_have_count(expected)
    sentence.get_by_role("slider", name="Hide below").fill("0.3")
    expected = int((weights(12, 3, 5).mean(0) >= 0.3).sum())
    expect(sentence.locator(".regard-arcs path")).to_have_count(expected)


def test_chinese_and_dark(sentence: Page) -> None:
    light = pixels(sentence)
    sentence.get_by_role("button", name="☾").click()
    assert pixels(sentence) != light
    sentence.get_by_role("button", name="中文").click()
    expect(sentence.get_by_role("slider", name="隐藏低于")).to_be_visible()
    expect(sentence.get_by_text("权重精确")).to_be_visible()


def test_the_picture_lies_beside_and_lights_up_where_it_was_looked_at(opened: Callable[..., Page]) -> None:
    looks = torch.zeros(1, 2, 4)
    looks[0, 0, 1], looks[0, 1, 2] = 1.0, 1.0
    white = np.full((8, 8, 3), 255, dtype=np.uint8)
    recording = Recording.from_weights({"image": looks}, queries=["up", "down"])
    page = opened([Chapter("?", recording, medium=Regions(white, (2, 2)))])
    page.locator(".regard-frame:has-text('up')").click()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    bright = page.evaluate(
        """() => { const canvas = document.querySelector(".regard-overlay"), context = canvas.getContext("2d");
          const bytes = context.getImageData(0, 0, canvas.width, canvas.height).data;
          const at = (x, y) => bytes[4 * (Math.floor(canvas.height * y) * canvas.width + Math.floor(canvas.width * x))];
          return [at(0.25, 0.25), at(0.75, 0.25), at(0.25, 0.75), at(0.75, 0.75)]; }"""
    )
    assert bright[1] == 255
    assert max(bright[0], bright[2], bright[3]) < 100


def test_the_sound_lies_beside(opened: Callable[..., Page]) -> None:
    values = np.random.default_rng(0).random((5, 30))
    page = opened(
        [Chapter("speech", Recording.from_weights({"ear": weights(1, 2, 10)}), medium=Spectrogram(values, 10, 1.5))]
    )
    expect(page.get_by_role("img", name=re.compile("attention over the sound"))).to_be_visible()


def test_a_narrow_screen_needs_no_scrolling_sideways(sentence: Page) -> None:
    sentence.set_viewport_size({"width": 360, "height": 700})
    pixels(sentence)
    assert sentence.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_both_languages_have_every_word_and_colors_are_those_of_the_pictures(sentence: Page) -> None:
    words = sentence.evaluate('() => modules["words.js"].listWords()')
    assert words["en"] == words["zh"]
    for kind, dark in (("weights", False), ("weights", True), ("difference", False)):
        shown = sentence.evaluate(
            '([kind, dark]) => Array.from(modules["colors.js"].buildPalette(kind, dark))', [kind, dark]
        )
        assert np.abs(np.array(shown).reshape(256, 3) - build_palette(kind, dark=dark).astype(int)).max() <= 1
