"""Journeys over the page, in a real Chromium: nothing fails, nothing is logged, nobody else is asked."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from playwright.sync_api import expect
from serving import Server, settle, share_folder, train_translators

from regard.inspect.recording import FactoredMap, Factors, PooledMap, Recording, Sketch

ASK = "view=translate&text=one+two+three"
LONG = 32_768


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A long recording, and one whose labels would be markup if anybody let them."""
    folder = tmp_path_factory.mktemp("recordings")
    hostile = ["<img src=x onerror=alert(1)>", "<script>alert(2)</script>"]
    Recording.from_weights({"<b>site</b>": torch.eye(2)}, queries=hostile, keys=hostile).save(
        folder / "hostile.safetensors"
    )
    Recording({"layer": build_long_map()}).save(folder / "long.safetensors")
    return [folder / "long.safetensors", folder / "hostile.safetensors"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share_folder(tmp_path_factory.getbasetemp(), "served", train_translators)


@pytest.fixture(scope="module")
def server(runs: Path, recordings: list[Path]) -> Iterator[Server]:
    server = Server(runs, "later", "earlier", *recordings)
    yield server
    server.stop()


def build_long_map() -> FactoredMap:
    """Return 32,768 × 32,768 weights of 64 kinds of queries and keys: 64 of them give the totals."""
    kinds, block = 64, LONG // 64
    angles = torch.arange(LONG) // block * (2 * torch.pi / kinds)
    vectors = 4 * torch.stack([angles.cos(), angles.sin()], dim=1)[None]
    few = vectors[:, ::block] @ vectors[:, ::block].transpose(1, 2)
    total = ((few.exp().sum(-1) * block).log()).repeat_interleave(block, dim=1)
    weights = (few - total[:, ::block, None]).exp()
    entropy = -(weights * weights.log() * block).sum(-1).repeat_interleave(block, dim=1)
    received = (weights.sum(1) * block).repeat_interleave(block, dim=1)
    largest, places = weights.max(-1, keepdim=True)
    tops = largest.repeat_interleave(block, dim=1), (places * block).repeat_interleave(block, dim=1)
    cells = weights.repeat_interleave(8, dim=1).repeat_interleave(8, dim=2)
    overview = PooledMap(cells, cells.clone(), (64, 64))
    return FactoredMap(Sketch(entropy, received, *tops, overview), Factors(vectors, vectors, total))


def read_translation(page: Any) -> str:
    """Return the translation, when it is complete."""
    page.wait_for_selector(".hypothesis[aria-pressed=true], .answer-text")
    settle(page)
    text: str = page.inner_text(".answer-text")
    return text


def read_map_label(page: Any) -> str:
    """Return the label of the heat map."""
    label: str = page.get_attribute(".attention canvas.regard-heatmap-canvas", "aria-label")
    return label


def wait_for_address(page: Any, part: str) -> None:
    """Wait until the address has this part: `page.url` may learn of a change later than the page."""
    page.wait_for_function("part => location.hash.includes(part)", arg=part)


def shows(page: Any, text: str) -> None:
    """Wait until the label of the heat map has this text."""
    page.wait_for_selector(f".attention canvas.regard-heatmap-canvas[aria-label*='{text}']")


def test_type_and_translate(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open()
    page.fill("textarea", "one two three")
    page.keyboard.press("Enter")
    assert all(word in {"un", "deux", "trois", "quatre", "cinq", "six"} for word in read_translation(page).split())
    page.wait_for_selector(".regard-grid button")
    shows(page, "decoder 1, mean of heads: heat map")
    expect(page.locator(".hypothesis")).to_have_count(5)
    wait_for_address(page, "text=one+two+three")


def test_a_translation_takes_three_requests(open_visit: Callable[..., Any]) -> None:
    one = open_visit()
    asked: list[str] = []
    one.page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    page = one.open(ASK)
    page.wait_for_selector(".regard-grid button")
    page.click(".regard-grid button[aria-label='encoder 0, head 0']")
    shows(page, "encoder 0, head 0")
    names = [url.split("/")[-1].split("?")[0] for url in asked]
    assert [name for name in names if name not in ("state", "alive")] == ["translate", "attention", "bundle"]


def test_choose_layers_and_heads(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open(ASK)
    page.wait_for_selector(".regard-grid button")
    page.select_option("label:has-text('Layer') select", label="encoder 0")
    shows(page, "4 queries by 4 keys")
    page.select_option("label:has-text('Head') select", label="1")
    shows(page, "head 1")
    page.click(".regard-grid button[aria-label='decoder 0, head 0']")
    shows(page, "decoder 0, head 0")
    wait_for_address(page, "head=0")
    page.click("button:has-text('Lines')")
    page.wait_for_selector("svg.regard-arcs path")


def test_a_cell_says_what_made_its_number(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open(f"{ASK}&lang=zh")
    page.wait_for_selector(".regard-grid button")
    page.click(".regard-grid button[aria-label='解码器 0，头 1']")
    shows(page, "解码器 0，头 1")
    page.locator("canvas.regard-heatmap-canvas").press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".regard-made .regard-terms")
    expect(page.locator(".regard-readout")).to_have_text(re.compile(r"：[\d.e−]+$"))
    weight = page.locator(".regard-readout").inner_text().rpartition("：")[2]
    expect(page.locator(".regard-made-place")).to_contain_text(f"{weight}：在")
    formula = page.locator(".regard-formula dd").nth(1).inner_text()
    assert formula.startswith("exp(s + b − log Σ exp) = exp(")
    assert float(formula.rpartition("= ")[2]) == pytest.approx(float(weight), rel=1e-3)
    expect(page.locator(".regard-facts")).to_contain_text("ScaledDot")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # another cell
    expect(page.locator(".regard-made-place")).not_to_contain_text(f"{weight}：")


def test_click_a_token_to_see_where_it_looked(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open(ASK)
    page.wait_for_selector(".regard-grid button")
    page.click(".part-queries button >> nth=0")
    page.wait_for_selector(".where:has-text('Where')")
    settle(page)
    weights = [float(page.get_attribute(f".part-keys button >> nth={n}", "title")) for n in range(4)]
    assert sum(weights) == pytest.approx(1, abs=1e-4)
    page.click(".part-keys button >> nth=1")
    page.wait_for_selector(".where:has-text('What looks at')")
    settle(page)
    box = page.locator(".attention canvas.regard-heatmap-canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.12, box["y"] + box["height"] * 0.6)
    page.wait_for_selector(".regard-tip:not([hidden])")
    expect(page.locator(".regard-tip")).to_have_text(re.compile(r"→ .*: [\d.e−]+$"))


def test_the_tree_leads_to_each_hypothesis(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open(ASK)
    page.wait_for_selector(".tree .node.ended")
    settle(page)
    expect(page.locator(".others summary")).to_have_text(re.compile("^1 of 5 · score"))
    page.click(".others summary")
    texts = page.locator(".hypothesis bdi").all_inner_texts()
    assert len(set(texts)) == len(texts) == 5
    page.click(".hypothesis >> nth=2")
    page.wait_for_function("text => document.querySelector('.answer-text').textContent === text", arg=texts[2])
    expect(page.locator(".tree .node.last")).to_have_attribute("aria-label", re.compile("^end of a hypothesis, score"))
    page.locator(".tree .node:not(.ended):not(.chosen)").first.dispatch_event("click")
    page.wait_for_function("() => document.querySelector('.answer-text').textContent.endsWith('…')")
    page.locator(".tree .node.ended.best").dispatch_event("click")
    page.wait_for_function("text => document.querySelector('.answer-text').textContent === text", arg=texts[0])


def test_two_runs_and_their_difference(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open(ASK)
    page.wait_for_selector(".regard-grid button")
    page.click("summary:has-text('Options')")
    others = page.locator("label:has-text('Compare with') option")
    expect(others.filter(has_text="earlier")).to_have_count(1)
    expect(others.filter(has_text="later")).to_have_count(0)  # not with itself
    page.select_option("label:has-text('Compare with') select", value="earlier")
    page.wait_for_selector("h2:has-text('later ↔ earlier')")
    page.wait_for_selector(".triple .pane:nth-child(3) canvas")
    expect(page.locator(".triple .regard-heatmap-canvas")).to_have_count(3)
    page.wait_for_selector("p:has-text('earlier: Its own translation:')")
    page.click(".regard-grid button[aria-label='decoder 0, head 1']")
    page.wait_for_selector(".triple h3:has-text('decoder 0')")


def test_mask_a_word_and_change_the_temperature(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open(ASK)
    page.wait_for_selector(".regard-grid button")
    page.click(".part-keys button >> nth=1")
    page.click("button:has-text('Mask “▁two”')")
    page.wait_for_selector(".part-keys .masked")
    wait_for_address(page, "masked=1")
    page.click(".part-queries button >> nth=0")
    page.wait_for_function("() => document.querySelectorAll('.part-keys button')[1].title === '0'")
    page.click("summary:has-text('Options')")
    page.select_option("label:has-text('Masked words') select", value="input")
    page.wait_for_selector(".part-keys button:has-text('<unk>')")
    page.click("button:has-text('Unmask all')")
    page.wait_for_selector(".part-keys button:has-text('▁two')")
    answers = set()
    page.fill("label:has-text('Temperature') input", "5")
    for seed in range(1, 60):
        with page.expect_request("**/translate"):  # a moment after the last change
            page.fill("label:has-text('Seed') input", str(seed))
        answers.add(read_translation(page))
        if len(answers) > 1:
            return
    pytest.fail("no seed gave another answer")


def test_export(open_visit: Callable[..., Any], tmp_path: Path) -> None:
    page = open_visit().open(ASK)
    page.wait_for_selector(".regard-grid button")
    files = {}
    for name in ("PNG", "SVG", "CSV", "JSON"):
        with page.expect_download() as download:
            page.click(f".part-saving button:has-text('{name}')")
        files[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[name])
        assert files[name].suffix == f".{name.lower()}"
    assert files["PNG"].read_bytes().startswith(b"\x89PNG")
    table = json.loads(files["JSON"].read_text(encoding="utf-8"))
    assert table["keys"] == ["▁one", "▁two", "▁three", "</s>"]
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in table["weights"])
    lines = list(csv.reader(files["CSV"].read_text(encoding="utf-8-sig").splitlines()))
    assert lines[0][1:] == table["keys"]
    assert [[float(weight) for weight in line[1:]] for line in lines[1:]] == table["weights"]
    texts = [node.text for node in ElementTree.parse(files["SVG"]).iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [*table["queries"], *table["keys"]]


def test_a_link_restores_the_view(open_visit: Callable[..., Any]) -> None:
    first = open_visit().open(ASK)
    first.wait_for_selector(".regard-grid button")
    with first.expect_response("**/attention"):
        first.click(".others summary")
        first.click(".hypothesis >> nth=1")
    first.click(".regard-grid button[aria-label='decoder 0, head 1']")
    first.select_option("label:has-text('Colors') select", value="row")
    first.click(".part-queries button >> nth=0")
    first.wait_for_selector(".where:has-text('Where')")
    first.click("button[aria-label='Zoom in']")
    wait_for_address(first, "look=")
    settle(first)
    second = open_visit()
    address = first.evaluate("location.href")
    second.page.goto(address)
    second.page.wait_for_selector(".where:has-text('Where')")
    settle(second.page)
    shows(second.page, read_map_label(first))
    expect(second.page.locator(".answer-text")).to_have_text(first.inner_text(".answer-text"))
    expect(second.page.locator("label:has-text('Colors') select")).to_have_value("row")
    second.page.wait_for_function("address => location.href === address", arg=address)


def test_pan_and_zoom_over_a_long_recording(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open("view=recording&file=long.safetensors")
    page.wait_for_selector(".note:has-text('32,768 × 32,768 weights')")
    settle(page)
    assert float(page.inner_text(".regard-legend > span:last-child")) < 0.01  # 0 to 1 would show nothing but white
    canvas = page.locator(".attention canvas.regard-heatmap-canvas")
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for _ in range(12):
        page.mouse.wheel(0, -400)
    page.wait_for_function("() => location.hash.includes('look=')")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # on the processor, however busy the machine is
    before = measure_script_seconds(session)
    frames = page.evaluate(DRAGGED)
    assert frames > 10
    assert (measure_script_seconds(session) - before) / frames < 1 / 30
    page.wait_for_function("() => !/: $/.test(document.querySelector('.regard-readout').textContent)")
    page.keyboard.press("0")
    page.wait_for_function("() => !location.hash.includes('look=')")


def measure_script_seconds(session: Any) -> float:
    """Return the seconds that scripts of a page have run."""
    [seconds] = [
        one["value"] for one in session.send("Performance.getMetrics")["metrics"] if one["name"] == "ScriptDuration"
    ]
    return float(seconds)


# Drags over the map, frame by frame, for a second and a half, and on a busy machine until there are a dozen frames.
DRAGGED = """async () => {
  const canvas = document.querySelector('.attention canvas.regard-heatmap-canvas');
  const box = canvas.getBoundingClientRect();
  const event = (kind, x, y) => new PointerEvent(kind, { pointerId: 1, clientX: x, clientY: y, bubbles: true });
  const send = (...where) => canvas.dispatchEvent(event(...where));
  canvas.setPointerCapture = () => {};
  let [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  send('pointerdown', x, y);
  let frames = 0;
  for (const end = performance.now() + 1500; performance.now() < end || frames < 12; frames += 1) {
    x += 3 * Math.sin(performance.now() / 200); y += 3 * Math.cos(performance.now() / 300);
    send('pointermove', x, y);
    await new Promise(requestAnimationFrame);
  }
  send('pointerup', x, y);
  return frames;
}"""


def test_labels_are_text_whatever_they_say(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open("view=recording")
    page.click("button:has-text('hostile.safetensors')")
    page.wait_for_selector(".part-queries button")
    expected = ["<img src=x onerror=alert(1)>", "<script>alert(2)</script>"]
    expect(page.locator(".part-queries button")).to_have_text(expected)
    assert page.locator("main img, main script, main b").count() == 0


def test_a_file_is_opened_from_disk(open_visit: Callable[..., Any], tmp_path: Path, recordings: list[Path]) -> None:
    one = open_visit()
    page = one.open("view=recording")
    page.set_input_files("input[type=file]", recordings[1])
    page.wait_for_selector("h2:has-text('hostile.safetensors')")
    one.excuse("400", times=2)  # the refusal itself, by the server and by the console, and nothing else
    (tmp_path / "broken.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{{{{{{{{")
    page.set_input_files("input[type=file]", tmp_path / "broken.safetensors")
    page.wait_for_selector(".trouble:has-text('expected'):has-text('fix:')")


def test_chinese(open_visit: Callable[..., Any]) -> None:
    page = open_visit(locale="zh-CN").open()
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    page.fill("textarea", "一 二 三")
    page.click("button:has-text('翻译') >> nth=-1")
    page.wait_for_selector(".regard-grid button")
    shows(page, "热图")
    for place, token in enumerate(["▁一", "▁二", "▁三"]):
        expect(page.locator(".part-keys button").nth(place)).to_have_text(token)
    page.click("button:has-text('English')")
    page.wait_for_selector("h2:has-text('Attention')")
    page.wait_for_selector(".regard-grid button")
    shows(page, "heat map")


def test_language_and_light_do_not_wait_for_the_server(open_visit: Callable[..., Any]) -> None:
    one = open_visit(locale="zh-CN")
    one.page.route("**/state", lambda route: None)  # nobody answers
    page = one.open("theme=dark")
    page.wait_for_selector("nav button:has-text('翻译')")
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dataset.theme]") == ["zh", "dark"]


def test_dark_and_light(open_visit: Callable[..., Any]) -> None:
    page = open_visit(color_scheme="dark").open(ASK)
    page.wait_for_selector(".regard-grid button")
    paper = "getComputedStyle(document.querySelector('.card')).backgroundColor"
    dark = page.evaluate(paper)
    page.click("button:has-text('☀')")
    page.wait_for_function(f"dark => {paper} !== dark", arg=dark)
    wait_for_address(page, "theme=light")


def test_by_keyboard_alone(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open()
    page.wait_for_selector("textarea")
    page.keyboard.press("/")
    page.keyboard.type("one two three")
    page.keyboard.press("Enter")
    page.wait_for_selector(".regard-grid button")
    settle(page)
    reached: set[str] = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()"))
        if page.evaluate("document.activeElement.classList.contains('regard-heatmap-canvas')"):
            break
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => /: [\\d.e−]+$/.test(document.querySelector('.regard-readout').textContent)")
    page.keyboard.press("Enter")
    page.wait_for_selector(".where:has-text('Where')")
    assert {"Translate", "Zoom in", "Lines"} <= reached
    page.locator(".tree [tabindex='0']").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.answer-text').textContent.endsWith('…')")


def test_everything_has_a_name(open_visit: Callable[..., Any]) -> None:
    page = open_visit().open(ASK)
    page.wait_for_selector(".tree .node.ended")
    settle(page)
    unnamed = page.evaluate(
        """[...document.querySelectorAll('button, input, select, textarea, canvas[tabindex], [role=button]')]
        .filter((one) => one.checkVisibility() && !(one.getAttribute('aria-label') || one.textContent.trim()
          || one.labels?.[0]?.textContent.trim() || one.title)).map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    assert page.evaluate(SHIFTS) <= 0.02
    expect(page.locator("[aria-live=polite] .answer-text")).to_have_count(1)


# How much of the page has jumped, as browsers measure it.
SHIFTS = """new Promise((done) => {
  new PerformanceObserver((list) => done(list.getEntries().reduce((sum, one) => sum + one.value, 0)))
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(0), 300);
})"""


def test_a_narrow_screen(open_visit: Callable[..., Any]) -> None:
    page = open_visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).open(ASK)
    page.wait_for_selector(".regard-grid button")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.tap(".part-queries button >> nth=0")
    page.wait_for_selector(".where:has-text('Where')")
    for view, content in (
        ("Recordings", "button:has-text('hostile.safetensors')"),
        ("Training", "svg.curves polyline"),
    ):
        page.tap(f"nav button:has-text('{view}')")
        page.wait_for_selector(content)
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_curves_grow_while_a_run_trains(open_visit: Callable[..., Any], runs: Path) -> None:
    page = open_visit().open("view=training&run=earlier")
    page.wait_for_selector("svg.curves polyline")
    before = page.get_attribute("svg.curves >> nth=0", "aria-label")
    with (runs / "earlier" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"event": "stepped", "step": 65, "epoch": 1, "loss": 0.125, "rate": 0.001}) + "\n")
    page.wait_for_selector(".key:has-text('0.125')")
    expect(page.locator("svg.curves").nth(0)).not_to_have_attribute("aria-label", before)
    page.wait_for_selector("[role=status]:has-text('finished · step 65 · 100 %')")


def test_a_server_that_stops_is_noticed_and_waited_for(open_visit: Callable[..., Any], server: Any) -> None:
    one = open_visit()
    page = one.open(ASK)
    page.wait_for_selector(".regard-grid button")
    text = read_translation(page)
    assert text != ""
    for part in ("ERR_CONNECTION_REFUSED", "Failed to load"):
        one.excuse(part, times=1000)  # it asks until somebody answers
    server.stop()
    page.fill("textarea", "two one")
    page.keyboard.press("Enter")
    page.wait_for_selector(".banner.gone:has-text('The server does not answer')")
    server.start()
    page.wait_for_selector(".banner:not(.gone):has-text('The server is back')")
    page.wait_for_selector(".regard-grid button")
    assert read_translation(page) != ""
