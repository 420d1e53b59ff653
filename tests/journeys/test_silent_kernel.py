"""A panel in a cell while its kernel comes, is restarted, loses messages, answers again, and goes."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, expect

from regard.inspect.display import cell
from regard.inspect.display.parts import read_part
from regard.inspect.draw.bundle import bundle_modules
from regard.inspect.draw.chapters import Chapter
from regard.inspect.recording import Recording

# The widget of a notebook: while `alive`, Python answers what it is sent; else messages are lost. A restart closes it.
MODEL = """<script>
{bundle}
const listeners = {{}};
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
window.alive = true;
window.refusing = false;
window.lost = 0;
const model = {{
  get: () => "it",
  on: (event, listener) => {{ listeners[event] = listener; }},
  send: (message) => {{
    if (refusing) throw new Error("Cannot send");
    if (alive) readPart(JSON.stringify(message)).then((text) => {{
      if (alive) listeners["msg:custom"]({{ question: message.question }}, [bytes(text)]);
    }});
    else lost += 1;
  }},
}};
window.open = () => {{ window.leave = modules["kernel.js"].connectModel(model); }};
window.restart = () => {{ refusing = true; listeners["comm_live_update"](); }};
</script>"""
SILENT, GONE, ABSENT = "The kernel does not answer", "no longer keeps this recording", "Run this cell to look at"


@pytest.fixture
def panel(watched_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    """A cell with a recording too long for it, whose kernel is not there yet, and whose clock is ours."""
    monkeypatch.setattr(cell, "link_kernel", lambda recording: "it")
    weights = (4 * torch.randn(2, 1200, 1200, generator=torch.Generator().manual_seed(0))).softmax(-1)
    recording = Recording.from_weights({"long": weights})
    page = watched_page.page

    def answer(text: str) -> str:
        message = json.loads(text)
        return base64.b64encode(read_part(recording, message["part"], message["values"])).decode()

    page.expose_function("readPart", answer)
    html = cell.render_chapters([Chapter("", recording)], language="en")[cell.HTML]
    script = MODEL.format(bundle=bundle_modules("kernel.js"))
    (tmp_path / "cell.html").write_text(f"<!doctype html><meta charset=utf-8>{script}{html}", encoding="utf-8")
    page.clock.install()
    page.goto((tmp_path / "cell.html").as_uri())
    page.wait_for_selector(".regard-output[data-ready=yes]")
    return page


def expect_kernel(page: Page, state: str) -> None:
    """Check that the cell says how its kernel is: in the foot that weights come from it, or above the map that not."""
    expect(page.locator(".regard-output")).to_have_attribute("data-kernel", state)
    foot, trouble = page.locator(".regard-foot"), page.locator(".regard-trouble")
    if state == "yes":
        expect(foot).to_contain_text("come from the kernel: every digit")
        expect(trouble).to_be_hidden()
    else:
        expect(foot).not_to_contain_text("come from the kernel: every digit")
        expect(trouble).to_contain_text(SILENT if state == "silent" else GONE)


def test_a_cell_says_how_its_kernel_is(panel: Page) -> None:
    expect(panel.locator(".regard-foot")).to_contain_text(ABSENT)
    # What has the focus says that keys are its own, not only what is around it: Notebook 7 looks there first.
    expect(panel.locator(".regard-output > div")).to_have_attribute("data-lm-suppress-shortcuts", "true")
    panel.evaluate("open()")
    expect_kernel(panel, "yes")
    expect(panel.locator(".regard-foot")).not_to_contain_text(ABSENT)
    panel.evaluate("restart()")
    panel.clock.run_for(5_000)
    expect_kernel(panel, "silent")
    panel.get_by_role("button", name="中文").click()
    expect(panel.locator(".regard-trouble")).to_contain_text("内核没有回应")
    panel.get_by_role("button", name="English").click()
    expect_kernel(panel, "silent")
    panel.evaluate("refusing = false")
    panel.clock.run_for(45_000)  # asked again by itself
    expect_kernel(panel, "yes")
    panel.evaluate("leave()")
    expect_kernel(panel, "gone")


def test_a_first_question_that_is_lost_is_asked_again(panel: Page) -> None:
    """As if the widget had been there before its kernel could hear it."""
    panel.evaluate("alive = false; open()")
    panel.clock.run_for(21_000)
    expect_kernel(panel, "silent")
    panel.clock.run_for(100_000)
    assert panel.evaluate("lost") in range(3, 6)  # each time after twice as long
    panel.evaluate("alive = true")
    panel.clock.run_for(200_000)
    expect_kernel(panel, "yes")


def test_a_question_that_is_lost_while_one_looks(panel: Page) -> None:
    panel.evaluate("open()")
    expect_kernel(panel, "yes")
    panel.evaluate("alive = false")
    for _ in range(3):
        panel.get_by_role("button", name="Zoom in").click()  # finer tiles, which never come
    panel.clock.run_for(21_000)
    expect_kernel(panel, "silent")
    expect(panel.locator("canvas.regard-heatmap-canvas")).to_be_visible()
    panel.evaluate("alive = true")
    panel.clock.run_for(25_000)
    expect_kernel(panel, "yes")
