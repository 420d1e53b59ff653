"""Panels in a real JupyterLab and in the HTML of nbconvert, in a real browser."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter
from nbconvert.preprocessors import ExecutePreprocessor
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, Locator, Page, expect

from regard.inspect.display.parts import TILE

CELLS = [
    """import torch, regard
torch.manual_seed(0)
model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
with regard.observe(model) as recording:
    model(*[torch.randn(1, 5, 8)] * 3)
recording""",
    "regard.attend(*[torch.randn(2, 3, 4)] * 3)",
    'regard.view(torch.rand(1, 2, 4, 4).softmax(-1), ["The", "Ġj", "umps", "</script>"])',
]
LENGTH = 4096
LONG = f"""import torch, regard
torch.manual_seed(0)
model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
with torch.no_grad(), regard.observe(model) as recording:
    model(*[torch.randn(1, {LENGTH}, 8)] * 3)
recording"""
TOKEN = "journey"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    ExecutePreprocessor(timeout=600).preprocess(notebook, {"metadata": {"path": str(folder)}})
    nbformat.write(notebook, folder / "look.ipynb")
    long = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(LONG)], metadata=notebook.metadata)
    nbformat.write(long, folder / "long.ipynb")
    data = folder / "jupyter_data_dir"
    data.mkdir()
    NotebookNotary(data_dir=str(data)).sign(notebook)  # as if it had been run in this JupyterLab: its scripts may run
    return folder


@pytest.fixture(scope="module")
def lab(folder: Path) -> Iterator[str]:
    """The address of a JupyterLab of its own."""
    kept = {
        name: str(folder / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    options = [f"--IdentityProvider.token={TOKEN}", "--ServerApp.port=0", "--no-browser", "--allow-root"]
    news = ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options, *news, f"--ServerApp.root_dir={folder}"],
        env=os.environ | kept | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    found = None
    for line in process.stderr:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/lab", line)
        if found:
            break
    assert found, "JupyterLab did not start"
    yield f"http://127.0.0.1:{found[1]}"
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=120)


def look_through(page: Page, place: int) -> None:
    """Check one of several panels: its map shows weights, its heads can be chosen, and its neighbors do not change."""
    panel = page.locator(".regard-output").nth(place)
    panel.scroll_into_view_if_needed()
    canvas = panel.locator("canvas.regard-heatmap-canvas")
    expect(canvas).to_be_visible()
    canvas.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(panel.locator(".regard-readout")).to_have_text(re.compile(r"→ .*: 0\.\d+$"))
    panel.get_by_role("button", name=re.compile("head 1$")).click()
    expect(canvas).to_have_attribute("aria-label", re.compile("head 1: heat map"))
    panel.get_by_role("button", name="Lines").click()
    expect(panel.locator(".regard-arcs")).to_be_visible()
    expect(panel.locator(".regard-arcs path").first).to_be_attached()


def measure_brightness(page: Page, place: int) -> Any:
    """Return how bright the paper of a panel is."""
    return (
        page.locator(".regard-cell")
        .nth(place)
        .evaluate("(cell) => Number(getComputedStyle(cell).backgroundColor.match(/\\d+/)[0])")
    )


def test_a_notebook_shows_panels_that_ask_nobody(browser: Browser, lab: str, folder: Path) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 900}, locale="en-US")
    context.set_default_timeout(240_000)
    expect.set_options(timeout=240_000)
    page = context.new_page()
    errors: list[str] = []
    elsewhere: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith((lab, lab.replace("http", "ws"), "data:", "blob:"))
            else elsewhere.append(request.url)
        ),
    )
    page.goto(f"{lab}/lab/tree/look.ipynb?token={TOKEN}&reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    expect(page.locator(".regard-output[data-ready=yes]")).to_have_count(len(CELLS))
    for place in range(len(CELLS)):
        look_through(page, place)
    assert measure_brightness(page, 0) > 200
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.wait_for_function("() => document.querySelector('.regard-output > div').dataset.theme === 'dark'")
    assert measure_brightness(page, 0) < 60
    assert errors == []
    assert [url for url in elsewhere if "regard" in url or not url.startswith("http")] == []
    check_converted(context.new_page(), folder / "look.ipynb")
    context.close()


def check_converted(page: Page, saved: Path) -> None:
    """Check that the HTML of nbconvert has the same panels, and a picture in each if no script runs."""
    html, _ = HTMLExporter(require_js_url="", mathjax_url="").from_filename(str(saved))
    place = saved.with_suffix(".html")
    place.write_text(html, encoding="utf-8")
    page.goto(place.as_uri())
    expect(page.locator(".regard-output[data-ready=yes]")).to_have_count(len(CELLS))
    look_through(page, 1)
    plain = page.context.browser.new_context(java_script_enabled=False).new_page()  # type: ignore[union-attr]
    plain.goto(place.as_uri())
    pictures = plain.locator(".regard-output > img")
    assert pictures.count() == len(CELLS)
    box = pictures.first.bounding_box()
    assert box is not None
    assert box["width"] > 150
    assert box["height"] > 100
    plain.context.close()
    outputs = [
        output["data"]["text/html"]
        for cell in json.loads(saved.read_text())["cells"]
        for output in cell["outputs"]
        if "data" in output
    ]
    assert all(sum(map(len, text)) < 200_000 for text in outputs)


def read_weight(panel: Locator) -> tuple[int, int, float]:
    """Return the query, the key and the weight in the middle of the map, about which its buttons zoom."""
    canvas = panel.locator("canvas.regard-heatmap-canvas")
    x, y = canvas.evaluate("""({ map: { margins, plot } }) =>
        [margins.left + plot.width / 2, margins.top + plot.height / 2]""")
    canvas.hover(position={"x": x, "y": y})
    readout = panel.locator(".regard-readout")
    expect(readout).to_have_text(re.compile(r"^\d+ → \d+: 0\.\d+$"))  # while the kernel is asked: …
    query, key, weight = re.findall(r"[\d.]+", readout.inner_text())
    return int(query), int(key), float(weight)


def wait_for(page: Page, done: Callable[[], bool]) -> None:
    """Let the page go on until `done()`."""
    until = time.monotonic() + 240
    while not done():
        assert time.monotonic() < until
        page.wait_for_timeout(50)


def test_a_long_recording_comes_from_the_kernel_by_tiles(browser: Browser, lab: str) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 900}, locale="en-US")
    context.set_default_timeout(240_000)
    expect.set_options(timeout=240_000)
    page = context.new_page()
    errors: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    answers = open_with_kernel(page, f"{lab}/lab/tree/long.ipynb?token={TOKEN}&reset")
    page.on("request", lambda request: asked.append(request.url))
    run_first_cell(page)
    panel = page.locator(".regard-output[data-kernel=yes]")
    expect(panel.locator(".regard-foot")).to_contain_text("from the kernel")
    space: dict[str, Any] = {}
    exec(LONG, space)
    weights = space["recording"]["MultiheadAttention"].dense().mean(0)
    places = [read_weight(panel)]
    before = sum(answers)
    for _ in range(6):
        panel.get_by_role("button", name="Zoom in").click()
    places.append(read_weight(panel))
    wait_for(page, lambda: sum(answers) - before > TILE**2 * 4)  # finer tiles
    page.mouse.down()
    page.mouse.move(500, 500, steps=5)
    page.mouse.up()
    places.append(read_weight(panel))
    coarse, fine, moved = (np.array(place[:2]) for place in places)
    assert abs(coarse - fine).max() <= LENGTH // 200  # zoomed about the middle: within a pixel of the whole map
    assert abs(moved - fine).max() > 0
    for query, key, weight in places:
        assert weight == pytest.approx(float(weights[query, key]), rel=1e-5)
    assert errors == []
    assert [url for url in asked if not url.startswith((lab, "data:", "blob:"))] == []
    assert max(answers) < 2_500_000  # the cell itself is bounded
    check_restarted(page)
    context.close()


def open_with_kernel(page: Page, address: str) -> list[int]:
    """Open a notebook, wait for its kernel, and return the sizes of all that is received.

    JupyterLab says "idle" before there is a kernel, and drops what is run then.
    """
    sizes: list[int] = []
    greetings: list[int] = []

    def receive(data: str | bytes) -> None:
        sizes.append(len(data))
        if isinstance(data, bytes) and b"kernel_info_reply" in data[:1000]:
            greetings.append(len(data))

    page.on("websocket", lambda socket: socket.on("framereceived", receive))
    busy = page.get_by_role("button", name="Select Kernel")  # asked for if the first kernel is slow to start
    page.add_locator_handler(busy, lambda: busy.click())
    page.goto(address)
    wait_for(page, lambda: bool(greetings))
    return sizes


def run_first_cell(page: Page) -> None:
    """Run the first cell of a notebook, whose kernel is there."""
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")


def check_restarted(page: Page) -> None:
    """Check that a cell whose kernel was restarted says so, and has the kernel again if it is run again."""
    page.get_by_text("Kernel", exact=True).first.click()
    page.get_by_text("Restart Kernel…", exact=True).click()
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    expect(page.locator(".regard-output[data-kernel=silent] .regard-trouble")).to_contain_text("run the cell again")
    run_first_cell(page)
    expect(page.locator(".regard-output[data-kernel=yes] .regard-foot")).to_contain_text("from the kernel")
