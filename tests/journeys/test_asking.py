"""Journeys with an image and a sound: chosen, dropped, by keyboard, in Chinese; and what is none of these."""

import base64
import io
import json
import re
import shutil
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect
from serving import Server, settle, share_folder, train_observers

MARKUP = "<img/src=x/onerror=alert(1)>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captioner, a listener, and the captioner again with words that would be markup if anybody let them."""
    trained = share_folder(tmp_path_factory.getbasetemp(), "asked", train_observers)
    folder = tmp_path_factory.mktemp("asked")
    for name in ("scenes", "tones"):
        shutil.copytree(trained / name, folder / name)
    shutil.copytree(trained / "scenes", folder / "hostile")
    [words] = (folder / "hostile" / "vocabulary").iterdir()
    values = json.loads(words.read_text())
    words.write_text(json.dumps(values | {"tokens": [f"{MARKUP}{word}" for word in values["tokens"]]}))
    return folder


@pytest.fixture(scope="module")
def server(runs: Path) -> Iterator[Server]:
    server = Server(runs, "scenes", "tones", "hostile")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image, a sound, and a text that is called an image."""
    folder = tmp_path_factory.mktemp("files")
    pixels = np.full((60, 90, 3), 255, dtype=np.uint8)
    pixels[10:40, 20:50] = (200, 30, 30)
    Image.fromarray(pixels).save(folder / "red.png")
    samples = np.concatenate([np.sin(np.arange(3000) * pitch) for pitch in (0.3, 0.5, 0.9)]) * 20_000
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setparams((1, 2, 8000, 0, "NONE", ""))
        written.writeframes(samples.astype("<i2").tobytes())
    (folder / "tones.wav").write_bytes(file.getvalue())
    (folder / "text.png").write_text("no image at all")
    return folder


def hand_over(page: Any, file: Path) -> None:
    """Choose a file and wait for its answer: the example of a first visit may be there already, or come meanwhile."""
    page.wait_for_selector("button:has-text('Choose an image…')")  # when the server has said what can be asked
    with page.expect_response(lambda response: "/ask?" in response.url and "example" not in response.url):
        page.set_input_files("input[type=file]", file)
    settle(page)


REDRAWN = "([canvas, before]) => document.querySelector(canvas).toDataURL() !== before"


def read_canvas(page: Any, canvas: str) -> str:
    """Return what a canvas shows."""
    content: str = page.eval_on_selector(canvas, "(canvas) => canvas.toDataURL()")
    return content


def test_an_image_is_described_and_each_word_shows_where_it_was_seen(
    open_visit: Callable[..., Any], files: Path
) -> None:
    page = open_visit().open()
    hand_over(page, files / "red.png")
    expect(page.locator("nav [aria-current]")).to_have_text("Ask")
    page.wait_for_selector(".regard-frame >> nth=0")
    words = page.inner_text(".answer-text").split()
    expect(page.locator(".regard-frame bdi")).to_have_text(words)
    expect(page.locator(".part-queries button")).to_have_text(words)
    before = read_canvas(page, ".part-beside > .regard-overlay >> nth=1")
    page.click(".regard-frame >> nth=1")
    page.wait_for_selector(f".where:has-text('Where “{words[1]}” looks')")
    expect(page.locator(".regard-frame").nth(1)).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(REDRAWN, arg=[".part-beside > .regard-overlay:not(.regard-original)", before])
    page.click("button:has-text('中文')")
    page.wait_for_selector("button:has-text('选择图像…')")
    page.wait_for_selector(".regard-frame[aria-pressed=true]")
    expect(page.locator(".regard-frame bdi")).to_have_text(words)


def test_a_sound_that_is_dropped_is_written_down(open_visit: Callable[..., Any], files: Path) -> None:
    page = open_visit().open("view=ask&run=tones")
    page.wait_for_selector("button:has-text('Choose a sound…')")
    content = base64.b64encode((files / "tones.wav").read_bytes()).decode()
    with page.expect_response(lambda response: "/ask?" in response.url and "example" not in response.url):
        page.evaluate(DROP, content)
    settle(page)
    page.wait_for_selector(".part-beside .regard-spectrogram")
    before = read_canvas(page, ".regard-spectrogram")
    page.click(".part-queries button >> nth=0")
    page.wait_for_selector(".where:has-text('Where')")
    page.wait_for_function(REDRAWN, arg=[".regard-spectrogram", before])
    page.wait_for_selector("canvas.regard-heatmap-canvas[aria-label*='heat map']")
    page.select_option("label:has-text('Run') select", value="scenes")
    page.wait_for_selector("button:has-text('Choose an image…')")
    expect(page.locator(".regard-spectrogram")).to_have_count(0)


# Drops a file on the page, as a hand would.
DROP = """(content) => {
  const bytes = Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], 'tones.wav', { type: 'audio/wav' }));
  const options = { dataTransfer, bubbles: true, cancelable: true };
  for (const kind of ['dragover', 'drop']) document.querySelector('main').dispatchEvent(new DragEvent(kind, options));
}"""


def test_a_file_is_chosen_by_keyboard(open_visit: Callable[..., Any], files: Path) -> None:
    one = open_visit()
    one.page.on("filechooser", lambda chooser: chooser.set_files(files / "red.png"))
    page = one.open()
    page.wait_for_selector("button:has-text('Choose an image…')")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Choose an image…":
            break
    with page.expect_response(lambda response: "/ask?" in response.url and "example" not in response.url):
        page.keyboard.press("Enter")
    settle(page)
    page.wait_for_selector(".regard-frame >> nth=0")
    page.focus(".regard-frame >> nth=0")
    page.keyboard.press("Enter")
    page.wait_for_selector(".regard-frame[aria-pressed=true]")


def test_what_is_no_image_is_one_sentence_and_the_page_goes_on(open_visit: Callable[..., Any], files: Path) -> None:
    one = open_visit()
    page = one.open()
    one.excuse("400", times=2)  # the refusal itself, by the server and by the console
    hand_over(page, files / "text.png")
    page.wait_for_selector(".trouble:has-text('which is not an image'):has-text('fix:')")
    hand_over(page, files / "red.png")
    page.wait_for_selector(".regard-frame >> nth=0")


def test_the_page_is_busy_until_the_newest_question_is_answered(open_visit: Callable[..., Any], files: Path) -> None:
    one, held = open_visit(), {}
    one.page.route("**/ask?*", lambda route: held.update({"example" in route.request.url: route}))
    page = one.open()
    form = page.locator("form.ask")
    expect(form).to_have_attribute("aria-busy", "true")
    page.set_input_files("input[type=file]", files / "red.png")
    with page.expect_response("**/ask?example=yes"):
        held[True].continue_()
    page.wait_for_function("() => new Promise(requestAnimationFrame)")
    expect(form).to_have_attribute("aria-busy", "true")
    expect(page.locator(".answer-text")).to_have_count(0)
    held[False].continue_()
    expect(form).to_have_attribute("aria-busy", "false")
    expect(page.locator(".answer-text")).to_be_visible()


def test_words_are_text_whatever_they_say(open_visit: Callable[..., Any], files: Path) -> None:
    page = open_visit().open("run=hostile")
    hand_over(page, files / "red.png")
    page.wait_for_selector(".regard-frame >> nth=0")
    expect(page.locator(".regard-frame bdi").nth(0)).to_have_text(re.compile("^" + re.escape(MARKUP)))
    expect(page.locator(".answer-text")).to_contain_text(MARKUP)
    assert page.locator("main img").count() == 0


def test_a_narrow_screen(open_visit: Callable[..., Any], files: Path) -> None:
    page = open_visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).open("theme=dark")
    hand_over(page, files / "red.png")
    page.wait_for_selector(".regard-frame >> nth=0")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
