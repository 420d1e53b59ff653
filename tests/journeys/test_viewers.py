"""Every row of the table for those who come from bertviz, CircuitsVis and inseq, tried in a browser."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, expect
from serving import open_context, settle
from transformers import BartConfig, BartModel, GPT2Config, GPT2Model

import regard
from regard.inspect.measure import rollout
from regard.inspect.recording import Recording

TABLE = Path(__file__).parents[2] / "docs" / "en" / "how-to" / "coming-from-viewers.md"
TOKENS = ["The", "cat", "sat", "on", "the", "mat", "because", "it", "was", "tired"]
LAYERS, HEADS = 3, 4
ONE_COLOR = """() => {
  const lines = [...document.querySelectorAll(".regard-arcs path")];
  const seen = lines.filter((line) => getComputedStyle(line).opacity > 0.5);
  return new Set(seen.map((line) => line.getAttribute("stroke"))).size === 1;
}"""
NOTHING = "nothing here"  # what a row says of things that are not attention


@pytest.fixture(scope="module")
def recording() -> Recording:
    """A random GPT-2, as on the page."""
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(n_layer=LAYERS, n_head=HEADS, n_embd=64)).eval()
    with torch.no_grad(), regard.observe(model, vectors=True) as seen:
        model(torch.arange(len(TOKENS))[None])
    seen.label(TOKENS, TOKENS)
    return seen


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Page]:
    context = open_context(browser, viewport={"width": 1440, "height": 900}, accept_downloads=True)
    yield context.new_page()
    context.close()


@pytest.fixture
def show(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Page]:
    """Calls `regard.view` as a script does, and opens what it wrote."""

    def view(*subject: object, **options: Any) -> Page:
        monkeypatch.setenv("BROWSER", "anything")
        opened: list[str] = []
        monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
        regard.view(*subject, **options)
        page.goto(opened[0])
        page.wait_for_selector("#report[data-ready]")
        settle(page)
        return page

    return view


def get_attentions(recording: Recording) -> list[torch.Tensor]:
    """Return what output_attentions=True would: (batch, heads, queries, keys) for each layer."""
    return [attention.dense()[None] for attention in recording.values()]


def choose(page: Page, name: str, label: str) -> None:
    page.get_by_role("combobox", name=name, exact=True).select_option(label=label)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    settle(page)


def try_head_view(recording: Recording, show: Any, folder: Path) -> None:
    page = show(get_attentions(recording), TOKENS)
    press(page, "Lines")
    expect(page.locator(".regard-swatch")).to_have_count(HEADS)
    colors = "(lines) => new Set(lines.map((line) => line.getAttribute('stroke'))).size"
    lines = page.locator(".regard-arcs path")
    assert lines.evaluate_all(colors) == HEADS
    page.locator(".regard-swatch").nth(1).hover()
    page.wait_for_function(ONE_COLOR)
    page.locator(".regard-swatch").nth(1).click()
    settle(page)
    assert lines.evaluate_all(colors) == HEADS - 1


def try_layer_and_heads(recording: Recording, show: Any, folder: Path) -> None:
    page = show(get_attentions(recording), TOKENS)
    choose(page, "Head", "2")
    page.locator(".part-queries button").nth(3).click()
    names = page.get_by_role("combobox", name="Layer", exact=True).locator("option").all_inner_texts()
    choose(page, "Layer", names[1])
    press(page, "Lines")
    expect(page.get_by_role("combobox", name="Head", exact=True)).to_have_value("2")
    expect(page.get_by_text(f"Where “{TOKENS[3]}” looks")).to_be_visible()


def try_two_sentences(recording: Recording, show: Any, folder: Path) -> None:
    weights = get_attentions(recording)[0]
    page = show(weights[..., :4, 4:], TOKENS[:4], TOKENS[4:])
    expect(page.locator(".part-queries button")).to_have_text(TOKENS[:4])
    expect(page.locator(".part-keys button")).to_have_text(TOKENS[4:])


def try_three_kinds(recording: Recording, show: Any, folder: Path) -> None:
    size = {"encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "d_model": 32, "vocab_size": 50}
    config = BartConfig(
        encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, **size
    )
    target, model = ["le", "chat", "dort"], BartModel(config).eval()
    with torch.no_grad(), regard.observe(model) as seen:
        model(input_ids=torch.arange(10)[None], decoder_input_ids=torch.arange(3)[None])
    page = show(seen, target, TOKENS)
    names = page.get_by_role("combobox", name="Layer", exact=True).locator("option").all_inner_texts()
    axes = {"encoder.": (TOKENS, TOKENS), "decoder.layers.0.self": (target, target), "encoder_attn": (target, TOKENS)}
    for part, (queries, keys) in axes.items():
        choose(page, "Layer", next(name for name in names if part in name))
        expect(page.locator(".part-queries button")).to_have_text(queries)
        expect(page.locator(".part-keys button")).to_have_text(keys)


def try_model_view(recording: Recording, show: Any, folder: Path) -> None:
    page = show(get_attentions(recording), TOKENS)
    press(page, "All heads")
    small = page.locator(".part-model .regard-grid button")
    expect(small).to_have_count(LAYERS * (HEADS + 1))
    order = page.get_by_role("combobox", name="Order", exact=True)
    said = " ".join(order.locator("option").all_inner_texts())
    for measure in ("same position", "previous position", "first position", "entropy", "agreement"):
        assert measure in said
    small.nth(3).click()
    expect(page.locator(".part-map canvas").first).to_be_visible()


def try_some_layers(recording: Recording, show: Any, folder: Path) -> None:
    page = show(recording.select("h.[0-1].*"))
    expect(page.get_by_role("combobox", name="Layer", exact=True).locator("option")).to_have_count(2)


def try_neuron_view(recording: Recording, show: Any, folder: Path) -> None:
    page = show(recording)
    choose(page, "Head", "1")
    canvas = page.locator(".regard-heatmap-canvas")
    x, y = canvas.evaluate("(canvas) => canvas.map.centerOf(5, 2)")
    canvas.click(position={"x": x, "y": y})
    page.wait_for_selector(".regard-terms")
    made = page.locator(".regard-made").inner_text()
    for part in ("score", "bias", "mask", "normalizer", "dimension", "query", "key"):
        assert part in made
    layer = page.get_by_role("combobox", name="Layer", exact=True).locator("option:checked").inner_text()
    why = recording[layer].explain(1, 5, 2)
    number = re.search(r"^(0\.\d+): rank", made, re.MULTILINE)
    assert number is not None
    assert float(number[1]) == pytest.approx(why.weight, abs=1e-6)


def try_html(recording: Recording, show: Any, folder: Path) -> None:
    recording.save(folder / "recording.regard")
    command = [sys.executable, "-m", "regard", "show", "recording.regard", "--html", "page.html"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    page = show(recording)  # for its window
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "page.html").as_uri())
    page.wait_for_selector("#report[data-ready]")
    assert [url.split(":")[0] for url in asked] == ["file"]


def try_heads_beside(recording: Recording, show: Any, folder: Path) -> None:
    page = show(get_attentions(recording), TOKENS)
    expect(page.locator(".part-map canvas").first).to_be_visible()
    expect(page.locator(".part-grid .regard-grid button")).to_have_count(LAYERS * (HEADS + 1))


def try_tokens(recording: Recording, show: Any, folder: Path) -> None:
    page = show(get_attentions(recording), TOKENS)
    page.locator(".part-queries button").nth(6).click()
    expect(page.get_by_text(f"Where “{TOKENS[6]}” looks")).to_be_visible()
    shown = page.locator(".part-keys button")
    colors = shown.evaluate_all("(all) => new Set(all.map((one) => one.style.background)).size")
    assert colors > 1


def try_colors(recording: Recording, show: Any, folder: Path) -> None:
    page = show([one / 9 for one in get_attentions(recording)], TOKENS)  # weak
    most = page.locator(".regard-legend > span").last
    expect(page.get_by_role("combobox", name="Colors", exact=True)).to_have_value("auto")
    assert float(most.inner_text()) < 0.2
    for name, text in (("0 to 1", "1"), ("by row", "row’s largest")):
        choose(page, "Colors", name)
        expect(most).to_have_text(re.compile(text))
    assert recording["h.0.attn"].dense()[0, 0, 1:].abs().max() == 0  # hidden pairs


def try_mean_and_rollout(recording: Recording, show: Any, folder: Path) -> None:
    page = show(recording)
    heads = page.get_by_role("combobox", name="Head", exact=True).locator("option").all_inner_texts()
    assert "mean of heads" in heads
    choose(page, "Layer", "h.2.attn")
    choose(page, "Head", next(name for name in heads if name.startswith("rollout")))
    settle(page)
    saved = {}
    for name in ("CSV", "JSON"):
        with page.expect_download() as found:
            page.get_by_role("button", name=f"Save {name}").click()
        saved[name] = Path(found.value.path()).read_text(encoding="utf-8")
    table = json.loads(saved["JSON"])["weights"]
    assert torch.tensor(table) == pytest.approx(rollout(recording), abs=1e-5)
    assert saved["CSV"].count("\n") >= len(TOKENS)


TRIALS = {
    "bertviz `head_view(attentions, tokens)`": try_head_view,
    "… `layer=`, `heads=`": try_layer_and_heads,
    "… `sentence_b_start=`": try_two_sentences,
    "… `encoder_attention=`, `cross_attention=`": try_three_kinds,
    "bertviz `model_view(attentions, tokens)`": try_model_view,
    "… `include_layers=`": try_some_layers,
    "bertviz `neuron_view.show(model, …)`": try_neuron_view,
    '… `html_action="return"`': try_html,
    "CircuitsVis `attention_heads(attention, tokens)`": try_heads_beside,
    "… `attention_patterns`": try_tokens,
    "… `max_value=`, `mask_upper_tri=`": try_colors,
    'inseq `attribute(…, "attention").show()`': try_mean_and_rollout,
    "… `show_granular()`": try_model_view,
    "… `show_tokens()`": try_tokens,
}


def test_every_row_is_tried() -> None:
    rows = [line.strip("|").split(" | ") for line in TABLE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    assert [row[0].strip() for row in rows[2:] if NOTHING not in row[-1]] == list(TRIALS)


@pytest.mark.parametrize("row", TRIALS)
def test_what_a_row_says_is_there(row: str, recording: Recording, show: Callable[..., Page], tmp_path: Path) -> None:
    TRIALS[row](recording, show, tmp_path)
