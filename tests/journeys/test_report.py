"""A report opened from disk in a real browser, as somebody who was sent it would."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect
from serving import settle

from regard import Causal
from regard.inspect.draw.bundle import bundle_modules
from regard.inspect.draw.chapters import Chapter, Regions, Spectrogram
from regard.inspect.draw.colors import build_palette
from regard.inspect.draw.report import render_report
from regard.inspect.measure import rollout
from regard.inspect.observe import observe
from regard.inspect.recording import DenseMap, Origin, Recording
from regard.layers import Attention

SOURCE = ["the", "<script>window.hacked = 1</script>", "年", "שלום", "</s>"]
TARGET = ["le", "<img src=x onerror=hack()>", "月"]
H = 2


def weights(seed: int, queries: int, keys: int) -> torch.Tensor:
    scores = torch.randn(H, queries, keys, generator=torch.Generator().manual_seed(seed))
    return (2 * scores).softmax(-1)


def make_hypothesis(seed: int, target: list[str]) -> Recording:
    own = Recording.from_weights({"encoder 0": weights(0, 5, 5)}, queries=SOURCE, keys=SOURCE)
    looks = {f"decoder {layer}": weights(seed + layer + 1, len(target), 5) for layer in (0, 1)}
    return own.merge(Recording.from_weights(looks, queries=target, keys=SOURCE))


@pytest.fixture
def open_report(tmp_path: Path, watched_page: Any) -> Callable[..., Page]:
    """Writes a report, opens it, and waits until it is drawn."""

    def open_it(chapters: list[Chapter], title: str = "a report", **options: Any) -> Page:
        (tmp_path / "report.html").write_text(render_report(chapters, title, **options), encoding="utf-8")
        watched_page.page.goto((tmp_path / "report.html").as_uri())
        watched_page.page.wait_for_selector("#report[data-ready]")
        return watched_page.page

    return open_it


@pytest.fixture
def sentence(open_report: Callable[..., Page]) -> Page:
    chapters = [
        Chapter("le 月", make_hypothesis(10, TARGET), -0.25),
        Chapter("la", make_hypothesis(20, TARGET[:2]), -1.5),
    ]
    return open_report(chapters, "the <b>年</b>")


def read_pixels(page: Page) -> str:
    """Return the heat map as it is painted now."""
    settle(page)
    return str(page.evaluate("() => document.querySelector('.regard-heatmap-canvas').toDataURL()"))


def hover(page: Page, row: int, column: int) -> tuple[str, list[int]]:
    """Point at a cell; return the text shown there, and the color of that place."""
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


def test_it_opens_without_network_and_without_complaint(sentence: Page, watched_page: Any) -> None:
    assert [url.split(":")[0] for url in watched_page.requests] == ["file"]
    expect(sentence.get_by_role("heading", level=1)).to_have_text("the <b>年</b>")
    policy = sentence.locator("meta[http-equiv]").get_attribute("content")
    assert policy is not None
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


def test_hovering_tells_the_exact_weight(sentence: Page) -> None:
    sentence.get_by_role("combobox", name="Head", exact=True).select_option(label="1")
    read_pixels(sentence)
    text, color = hover(sentence, 2, 1)
    exact = weights(12, 3, 5)[1, 2, 1].item()  # layer 1 of the first hypothesis
    assert np.float32(float(text.rpartition(": ")[2])) == np.float32(exact)  # all bits
    assert color == [*build_palette("weights")[round(255 * exact)].tolist(), 255]
    assert text.startswith("月 → <script>window.hacked = 1</script>: ")


def test_labels_are_text_whatever_they_say(sentence: Page) -> None:
    assert sentence.evaluate("() => window.hacked") is None
    assert sentence.locator("main img").count() == 0
    expect(sentence.get_by_role("group", name="output: tokens").get_by_role("button").nth(1)).to_have_text(
        "<img src=x onerror=hack()>"
    )


def test_layers_heads_and_hypotheses_change_the_picture(sentence: Page) -> None:
    seen = [read_pixels(sentence)]
    for name, label in (("Head", "0"), ("Head", "1"), ("Layer", "decoder 0"), ("Layer", "encoder 0")):
        sentence.get_by_role("combobox", name=name, exact=True).select_option(label=label)
        seen.append(read_pixels(sentence))
    sentence.get_by_role("combobox", name="Layer", exact=True).select_option(label="decoder 1")
    sentence.get_by_role("button", name="la (score −1.50)").click()
    seen.append(read_pixels(sentence))
    assert [seen.index(picture) for picture in seen] == [0, 1, 2, 3, 4, 5]


def test_a_small_picture_of_a_head_shows_it(sentence: Page) -> None:
    sentence.get_by_role("button", name="decoder 0, head 1").click()
    expect(sentence.get_by_role("combobox", name="Layer", exact=True)).to_have_value("1")
    expect(sentence.get_by_role("combobox", name="Head", exact=True)).to_have_value("1")
    sentence.keyboard.press("ArrowLeft")
    expect(sentence.get_by_role("combobox", name="Head", exact=True)).to_have_value("0")
    expect(sentence.get_by_role("button", name="decoder 0, head 0")).to_be_focused()


def test_colors_by_row_make_each_rows_largest_the_darkest(sentence: Page) -> None:
    before = read_pixels(sentence)
    sentence.get_by_role("combobox", name="Colors", exact=True).select_option(value="row")
    assert read_pixels(sentence) != before
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
    read_pixels(sentence)  # waits until it is painted
    sentence.wait_for_function(
        """() => { const canvas = document.querySelector(".regard-grid button canvas");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return data.every((part) => part === 255); }"""
    )  # all white


def test_a_token_shows_where_it_looked(sentence: Page) -> None:
    sentence.get_by_role("group", name="output: tokens").get_by_role("button").nth(2).click()
    expect(sentence.get_by_text("Where “月” looks")).to_be_visible()
    first = sentence.get_by_role("group", name="input: tokens").get_by_role("button").first
    settle(sentence)
    label = first.get_attribute("aria-label")
    assert label is not None
    assert np.float32(float(label.removeprefix("the "))) == pytest.approx(
        weights(12, 3, 5).mean(0)[2, 0].item(), rel=1e-6
    )


def test_everything_by_keyboard(sentence: Page) -> None:
    canvas = sentence.get_by_role(
        "application", name=re.compile("decoder 1, mean of heads: heat map, 3 queries by 5 keys")
    )
    canvas.focus()
    sentence.keyboard.press("ArrowRight")
    sentence.keyboard.press("ArrowDown")
    expect(sentence.get_by_role("status")).to_have_text(re.compile(r"^<img.*→ the: 0\.\d+$"))
    before = read_pixels(sentence)
    for key in ("+", "+", "+", "+", "Shift+ArrowRight"):
        sentence.keyboard.press(key)
    assert read_pixels(sentence) != before
    sentence.keyboard.press("0")
    assert read_pixels(sentence) == before
    sentence.keyboard.press("Enter")
    expect(sentence.get_by_text("Where “<img src=x onerror=hack()>” looks")).to_be_visible()


def test_lines_are_drawn_from_tokens_to_what_they_look_at(sentence: Page) -> None:
    lines = sentence.locator(".regard-arcs path")
    sentence.get_by_role("button", name="Lines").click()
    expect(lines).to_have_count(int((weights(12, 3, 5) >= 0.02).sum()))  # of all heads, each in its color
    assert len(set(lines.evaluate_all("(lines) => lines.map((line) => line.getAttribute('stroke'))"))) == H
    sentence.get_by_role("slider", name="Hide below").fill("0.3")
    expect(lines).to_have_count(int((weights(12, 3, 5) >= 0.3).sum()))
    sentence.locator(".regard-swatch").first.click()
    expect(lines).to_have_count(int((weights(12, 3, 5)[1] >= 0.3).sum()))
    sentence.get_by_role("button", name="none").click()
    expect(lines).to_have_count(0)


def test_what_is_chosen_stays_chosen_where_the_axes_agree(sentence: Page) -> None:
    sentence.get_by_role("group", name="output: tokens").get_by_role("button").nth(0).click()
    sentence.get_by_role("combobox", name="Head", exact=True).select_option(label="1")
    sentence.get_by_role("combobox", name="Layer", exact=True).select_option(label="decoder 0")
    expect(sentence.get_by_text("Where “le” looks")).to_be_visible()
    expect(sentence.get_by_role("combobox", name="Head", exact=True)).to_have_value("1")
    sentence.get_by_role("combobox", name="Layer", exact=True).select_option(label="encoder 0")
    expect(sentence.get_by_text("All queries together")).to_be_visible()  # its queries are others
    sentence.get_by_role("combobox", name="Layer", exact=True).select_option(label="decoder 1")
    expect(sentence.get_by_text("Where “le” looks")).to_be_visible()


def test_one_token_in_every_head(sentence: Page) -> None:
    sentence.get_by_role("group", name="output: tokens").get_by_role("button").nth(2).click()
    rows = {f"decoder {layer}·{head}": weights(11 + layer, 3, 5)[head, 2] for layer in (0, 1) for head in range(H)}
    order = sorted(rows, key=lambda name: -rows[name].max().item())
    chips = sentence.get_by_role("group", name="“月” in every head").get_by_role("button")
    expect(chips).to_have_text([re.compile(f"^{re.escape(name)} ?→") for name in order])
    texts = chips.all_inner_texts()
    assert [float(text.split()[-1]) for text in texts] == [round(rows[name].max().item(), 2) for name in order]
    chips.nth(0).click()
    expect(sentence.get_by_role("combobox", name="Head", exact=True)).to_have_value(order[0][-1])


def test_all_heads_of_all_layers_fit_on_one_screen(open_report: Callable[..., Page]) -> None:
    recording = Recording.from_weights({f"model.h.{layer}.attn": torch.rand(12, 6, 6) for layer in range(12)})
    page = open_report([Chapter("", recording)])
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_role("button", name="All heads").click()
    settle(page)
    boxes = page.locator(".part-model .regard-grid button").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect()).map(({ right, bottom }) => [right, bottom])"
    )
    assert len(boxes) == 12 * 13  # their mean too
    assert max(right for right, _ in boxes) <= 1440
    assert max(bottom for _, bottom in boxes) <= 900
    assert page.locator(".part-model .regard-grid-name").all_inner_texts()[1:] == [str(layer) for layer in range(12)]
    page.get_by_role("button", name="model.h.3.attn, head 4").click()
    expect(page.get_by_role("application", name=re.compile("model.h.3.attn, head 4: heat map"))).to_be_visible()


def test_pieces_become_words(open_report: Callable[..., Page]) -> None:
    tokens = ["The", "Ġj", "umps", "Ġend"]
    table = weights(3, 4, 4)
    page = open_report([Chapter("", Recording.from_weights({"layer": table}, queries=tokens, keys=tokens))])
    page.get_by_role("group", name="output: tokens").get_by_role("button").nth(2).click()
    page.get_by_role("checkbox", name="Whole words").check()
    read = page.get_by_role("group", name="input: tokens").get_by_role("button")
    expect(read).to_have_text(["The", "jumps", "end"])
    expect(page.get_by_text("Where “jumps” looks")).to_be_visible()
    mean = table.mean(0)[1:3].mean(0)
    shown = [float((label or "").split()[-1]) for label in (read.nth(n).get_attribute("aria-label") for n in range(3))]
    assert shown == pytest.approx([mean[0].item(), (mean[1] + mean[2]).item(), mean[3].item()], rel=1e-4)
    page.get_by_role("checkbox", name="Whole words").uncheck()
    expect(page.get_by_text("Where “Ġj” looks")).to_be_visible()


def test_chinese_and_dark(sentence: Page) -> None:
    light = read_pixels(sentence)
    sentence.get_by_role("button", name="☾").click()
    assert read_pixels(sentence) != light
    sentence.get_by_role("button", name="中文").click()
    expect(sentence.get_by_role("slider", name="隐藏低于")).to_be_visible()
    expect(sentence.get_by_text("权重精确")).to_be_visible()


def test_the_picture_lies_beside_and_lights_up_where_it_was_looked_at(open_report: Callable[..., Page]) -> None:
    looks = torch.zeros(1, 2, 4)
    looks[0, 0, 1], looks[0, 1, 2] = 1.0, 1.0
    white = np.full((8, 8, 3), 255, dtype=np.uint8)
    recording = Recording.from_weights({"image": looks}, queries=["up", "down"])
    page = open_report([Chapter("?", recording, medium=Regions(white, (2, 2)))])
    page.locator(".regard-frame:has-text('up')").click()
    settle(page)
    bright = page.evaluate(
        """() => { const canvas = document.querySelector(".regard-overlay:not(.regard-original)");
          const context = canvas.getContext("2d");
          const bytes = context.getImageData(0, 0, canvas.width, canvas.height).data;
          const place = (x, y) => Math.floor(canvas.height * y) * canvas.width + Math.floor(canvas.width * x);
          const at = (x, y) => bytes[1 + 4 * place(x, y)];
          return [at(0.25, 0.25), at(0.75, 0.25), at(0.25, 0.75), at(0.75, 0.75)]; }"""
    )
    assert bright[1] < 150  # red heat takes green away
    assert min(bright[0], bright[2], bright[3]) == 255  # what got nothing is as it was


def test_the_sound_lies_beside(open_report: Callable[..., Page]) -> None:
    values = np.random.default_rng(0).random((5, 30))
    page = open_report(
        [Chapter("speech", Recording.from_weights({"ear": weights(1, 2, 10)}), medium=Spectrogram(values, 10, 1.5))]
    )
    expect(page.get_by_role("img", name=re.compile("attention over the sound"))).to_be_visible()


def test_a_narrow_screen_needs_no_scrolling_sideways(sentence: Page) -> None:
    sentence.set_viewport_size({"width": 360, "height": 700})
    read_pixels(sentence)
    assert sentence.evaluate("() => document.documentElement.scrollWidth") <= 360


MODULES = f"""(asked) => {{
  const document = undefined;
  const [name, part, values] = asked;
  {bundle_modules("chapters.js")}
  return modules[name][part](...values);
}}"""


def test_both_languages_have_every_word_and_colors_are_those_of_the_pictures(watched_page: Any) -> None:
    words = watched_page.page.evaluate(MODULES, ["words.js", "listWords", []])
    assert words["en"] == words["zh"]
    for kind, dark in itertools.product(("weights", "difference"), (False, True)):
        shown = watched_page.page.evaluate(MODULES, ["colors.js", "buildPalette", [kind, dark]])
        colors = np.array(shown).reshape(256, 3)
        assert np.abs(colors - build_palette(kind, dark=dark).astype(int)).max() <= 1


@pytest.mark.parametrize(("score", "normalizer"), [("scaled-dot", "softmax"), ("additive", "entmax")])
def test_a_cell_says_what_made_it_as_python_does(open_report: Callable[..., Page], score: str, normalizer: str) -> None:
    torch.manual_seed(0)
    layer = Attention(H * 12, heads=H, score=score, bias="alibi", normalizer=normalizer).eval()
    with torch.no_grad(), observe(layer, vectors=True) as recording:
        layer(torch.randn(1, 5, H * 12), mask=Causal())
    recording.label("abcde", "abcde")
    page = open_report([Chapter("", recording)])
    page.get_by_role("combobox", name="Head", exact=True).select_option(label="1")
    page.locator("canvas.regard-heatmap-canvas").focus()
    for key in (*["ArrowDown"] * 4, "ArrowRight", "Enter"):  # row 3, column 1
        page.keyboard.press(key)
    made = page.locator(".regard-made")
    expect(made.get_by_role("heading", name="What made this number: “d” → “b”")).to_be_visible()
    facts = (told := recording["Attention"].explain(1, 3, 1)).facts
    assert facts is not None
    place = f"rank {told.rank} of 5 keys, {100 * told.share:.1f} % of the row"
    expect(made.locator(".regard-made-place")).to_contain_text(place)
    expect(made.locator(".regard-formula dd").nth(1)).to_be_visible()
    terms = [float(text.replace("−", "-")) for text in made.locator("tbody td:nth-of-type(3)").all_inner_texts()]
    largest = facts.terms[facts.terms.abs().argsort(descending=True)[:8]].tolist()
    assert terms[:8] == pytest.approx(largest, rel=2e-3)  # a report keeps three digits of a vector
    assert sum(terms) == pytest.approx(facts.score, abs=5e-3)
    formula = made.locator(".regard-formula dd").nth(1).inner_text()
    assert float(formula.rpartition("= ")[2]) == pytest.approx(told.weight, rel=1e-3)
    expect(made.locator(".regard-facts")).to_contain_text("entmax, α" if normalizer == "entmax" else "softmax")
    for key in (*["ArrowUp"] * 3, "Enter"):
        page.keyboard.press(key)  # the first query does not see the second key
    expect(made.locator(".regard-formula")).to_contain_text("0, because the mask hides this key")
    made.get_by_role("button", name="Close").press("Enter")
    expect(made).to_be_hidden()
    expect(page.locator("canvas.regard-heatmap-canvas")).to_be_focused()


@pytest.mark.parametrize("hard", [False, True])
def test_keys_that_change_from_step_to_step_are_those_of_the_step(open_report: Callable[..., Page], hard: bool) -> None:
    torch.manual_seed(0)
    steps, keys, dim = 3, 4, 9
    query, key, factor = torch.randn(H, steps, dim), torch.randn(H, steps * keys, dim), torch.randn(H * steps, dim)
    by_step = key.unflatten(1, (steps, keys))
    scores = (factor.unflatten(0, (H, steps))[:, :, None] * torch.tanh(query[:, :, None] + by_step)).sum(-1)
    weights = (scores == scores.amax(-1, keepdim=True)).float() if hard else scores.softmax(-1)
    named = {"score": "Additive", "normalizer": "argmax" if hard else "softmax"}
    origin = Origin(query, key, "tanh", factor, stepwise=True, **named)  # type: ignore[arg-type]
    recording = Recording({"steps": DenseMap(weights, origin)})
    recording.label("abc", "wxyz")
    page = open_report([Chapter("", recording)])
    page.get_by_role("combobox", name="Head", exact=True).select_option(label="1")
    page.locator("canvas.regard-heatmap-canvas").focus()
    for pressed in (*["ArrowDown"] * 3, *["ArrowRight"] * 2, "Enter"):
        page.keyboard.press(pressed)
    made = page.locator(".regard-made")
    expect(made.get_by_role("heading", name="What made this number: “c” → “y”")).to_be_visible()
    expect(made.locator(".regard-formula dd").nth(1)).to_be_visible()  # computed after the heading is shown
    formulas = made.locator(".regard-formula dd").all_inner_texts()
    assert float(formulas[0].rpartition("= ")[2].replace("−", "-")) == pytest.approx(float(scores[1, 2, 2]), rel=5e-3)
    assert float(formulas[1].rpartition("= ")[2]) == pytest.approx(float(weights[1, 2, 2]), rel=5e-3)


def test_a_cell_without_vectors_says_its_rank_and_why_no_more(sentence: Page) -> None:
    sentence.get_by_role("combobox", name="Head", exact=True).select_option(label="1")
    sentence.locator("canvas.regard-heatmap-canvas").press("ArrowDown")
    sentence.keyboard.press("Enter")
    made = sentence.locator(".regard-made")
    expect(made.locator(".regard-made-place")).to_have_text(re.compile(r"rank \d of 5 keys, [\d.]+ % of the row$"))
    expect(made).to_contain_text("The queries and keys were not kept. To keep them: observe(model, vectors=True)")
    sentence.get_by_role("combobox", name="Head", exact=True).select_option(label="mean of heads")
    expect(made).to_contain_text("mean of the heads, which no single score made")


def test_rollout_is_a_further_head_of_a_stack(open_report: Callable[..., Page]) -> None:
    layers = {f"h.{layer}": weights(layer, 7, 7) for layer in range(3)}
    recording = Recording.from_weights(layers | {"cross": weights(5, 3, 7)})
    page = open_report([Chapter("", recording)])
    head = page.get_by_role("combobox", name="Head", exact=True)
    expect(head.get_by_role("option")).to_have_text(["mean of heads", "0", "1", "alignment"])  # of one layer
    page.get_by_role("combobox", name="Layer", exact=True).select_option(label="h.2")
    head.select_option(label="rollout up to here")
    canvas = page.get_by_role("application", name=re.compile("h.2, rollout up to here: heat map, 7 queries by 7 keys"))
    expect(canvas).to_be_visible()
    for last in (2, 1):
        expected = rollout(recording.select(f"h.[0-{last}]"))
        page.get_by_role("combobox", name="Layer", exact=True).select_option(label=f"h.{last}")
        expect(page.get_by_role("application", name=re.compile(f"h.{last}, rollout up to here"))).to_be_visible()
        cells = [[row, column] for row in range(7) for column in range(7)]
        read = "([row, column]) => document.querySelector('.regard-heatmap-canvas').map.source.weight(row, column)"
        found = [page.evaluate(read, cell) for cell in cells]
        assert found == pytest.approx(expected.flatten().tolist(), abs=1e-6)


def test_labels_above_wide_cells_are_not_cut(open_report: Callable[..., Page]) -> None:
    written = """() => { const written = []; const original = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        written.push(text); return original.call(this, text, ...place); };
      window.written = written; }"""
    page = open_report(
        [Chapter("", Recording.from_weights({"a": torch.eye(2)}, queries=["q", "r"], keys=["left", "right"]))]
    )
    page.evaluate(written)
    page.locator("canvas.regard-heatmap-canvas").press("ArrowDown")  # draws it again
    page.wait_for_function("() => window.written.length >= 4")
    assert {text.strip("\u2068\u2069") for text in page.evaluate("() => window.written")} == {"q", "r", "left", "right"}
