"""A real Chromium for journeys through pages, and pages that report what goes wrong on them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))

from serving import PATIENCE, PageVisit, Server, WatchedPage, open_context

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_CHROMIUM = (
    "no Chromium on this machine: install one (Debian: apt-get install chromium) to run the journeys through pages"
)


def find_chromium() -> str | None:
    """Return the path of a Chromium, if one is installed."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def install_chromium() -> str | None:
    """Install Debian's Chromium if we may, with fonts, or Chinese would be drawn as boxes; return its path."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium", "fonts-noto-cjk"]):
        done = subprocess.run(["apt-get", "-q", *command], env=environment, capture_output=True, timeout=600)
        if done.returncode:
            return None
    return find_chromium()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield one Chromium for the journeys of a file: while it is open, no other test can run an event loop of its own.

    Without a Chromium journeys are skipped; on CI that is a failure.
    """
    path = find_chromium() or install_chromium()
    if path is None and os.environ.get("CI") == "true":
        pytest.fail(NO_CHROMIUM)
    if path is None:
        pytest.skip(NO_CHROMIUM)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def watched_page(browser: Browser) -> Iterator[WatchedPage]:
    """Yield a new page; the test fails if its console reported an error or a warning."""
    context = open_context(browser, viewport={"width": 1240, "height": 900}, color_scheme="light")
    own = WatchedPage(context.new_page())
    own.watch()
    yield own
    context.close()
    assert own.complaints == []


@pytest.fixture
def open_visit(browser: Any, server: Server) -> Iterator[Callable[..., PageVisit]]:
    """Yield a function that opens pages; the test fails if one had an error or sent a request to another server."""
    opened: list[PageVisit] = []

    def open_page(**options: Any) -> PageVisit:
        opened.append(PageVisit(open_context(browser, **options).new_page(), server))
        return opened[-1]

    yield open_page
    troubles = [trouble for one in opened for trouble in one.list_troubles()]
    for one in opened:
        one.page.context.close()
    assert troubles == []
