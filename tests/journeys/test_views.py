"""Journeys through the views and their states, with models that were never trained: one server, one page."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import expect
from serving import Server, Visited

from regard.inspect.recording import Recording

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))

from tiny_runs import make_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    make_run(folder / "numbers", "transformer")
    Recording.from_weights({"site": torch.eye(3)}, queries=list("abc"), keys=list("xyz")).save(folder / "a.safetensors")
    (folder / "broken.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{{{{{{{{")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    server = Server(folder, "numbers")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def visit(browser: Any, server: Server) -> Iterator[Visited]:
    """One page for all of these tests; each begins with an address of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
    context.set_default_timeout(30_000)
    one = Visited(context.new_page(), server)
    yield one
    context.close()


@pytest.fixture
def page(visit: Visited) -> Iterator[Any]:
    visit.page.goto("about:blank")
    visit.troubles.clear()
    yield visit.page
    assert [trouble for trouble in visit.list_troubles() if "400" not in trouble] == []


def test_the_first_screen_is_alive_in_three_requests(visit: Visited, page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/api/")[2]))
    visit.open()
    page.wait_for_selector(".tree .node.ended")
    page.wait_for_selector(".regard-grid button")
    assert page.locator(".hints li").count() == 3
    assert page.input_value("textarea") != ""
    assert [one.split("/")[-1] for one in asked if one not in ("", "state", "alive")] == [
        "translate",
        "attention",
        "bundle",
    ]
    page.click(".hints button")
    expect(page.locator(".hints")).to_be_hidden()


def test_back_and_forward_walk_through_views(visit: Visited, page: Any) -> None:
    visit.open("text=one+two")
    page.wait_for_selector(".tree .node.ended")
    page.fill("textarea", "three")
    page.keyboard.press("Enter")
    page.wait_for_selector(".regard-grid button")
    for name in ("Recordings", "Training"):
        page.click(f"nav button:has-text('{name}')")
    current = page.locator("nav [aria-current]")
    page.go_back()
    expect(current).to_have_text("Recordings")
    page.go_back()
    expect(current).to_have_text("Translate")
    expect(page.locator("textarea")).to_have_value("three")
    page.go_back()
    expect(page.locator("textarea")).to_have_value("one two")
    page.go_forward()
    page.go_forward()
    expect(current).to_have_text("Recordings")


def test_a_file_that_was_opened_has_a_link_and_errors_go_when_the_next_thing_works(
    visit: Visited, page: Any, folder: Path
) -> None:
    visit.open("view=recording")
    page.set_input_files("input[type=file]", folder / "broken.safetensors")
    page.wait_for_selector(".trouble:has-text('fix:')")
    page.set_input_files("input[type=file]", folder / "a.safetensors")
    page.wait_for_selector("h2:has-text('a.safetensors')")
    expect(page.locator(".trouble")).to_be_hidden()
    link = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("h2:has-text('a.safetensors')")
    expect(page.locator(".part-said button")).to_have_count(3)


def test_what_is_cut_or_out_of_bounds_is_said(visit: Visited, page: Any) -> None:
    visit.open("beam=9999&text=one+two")
    page.wait_for_selector(".note:has-text('Beam: 9999 is not from 1 to 16; 16 is used.')")
    page.wait_for_selector(".tree .node.ended")
    page.fill("textarea", "one " * 600)
    page.wait_for_selector(".note:has-text('The text has 2,400 characters; the first 2,000 are used.')")
    page.click("summary:has-text('Options')")
    page.fill("label:has-text('Length penalty') input", "77")
    page.keyboard.press("Tab")
    page.wait_for_selector(".note:has-text('Length penalty: 77 is not from 0 to 5; 5 is used.')")


def test_a_server_that_is_gone_is_said_in_a_view_that_asks_nothing(visit: Visited, page: Any, server: Server) -> None:
    visit.open("view=recording")
    page.wait_for_selector("main .card")
    server.stop()
    page.wait_for_selector(".banner.gone:has-text('The server does not answer')")
    server.start()
    page.wait_for_selector(".banner:not(.gone):has-text('The server is back')")
    visit.troubles.clear()
