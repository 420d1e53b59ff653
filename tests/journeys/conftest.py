"""A real Chromium for journeys through pages, and a page that watches what goes wrong on it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))

from serving import PATIENCE, Server, Visited, open_context

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW = "no Chromium on this machine: install one (Debian: apt-get install chromium) to run the journeys through pages"


def found() -> str | None:
    """A Chromium that is installed."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def installed() -> str | None:
    """Debian's, where we may install it; the fonts with it, or Chinese would be drawn as boxes."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium", "fonts-noto-cjk"]):
        done = subprocess.run(["apt-get", "-q", *command], env=environment, capture_output=True, timeout=600)
        if done.returncode:
            return None
    return found()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for the journeys of a file: while it is open, no other test could run an event loop of its own.

    Without a Chromium journeys are skipped; on CI that is a failure.
    """
    path = found() or installed()
    if path is None and os.environ.get("CI") == "true":
        pytest.fail(HOW)
    if path is None:
        pytest.skip(HOW)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@dataclass
class Watched:
    """A page, with what its console complained of and what it asked other places for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        page = self.page
        page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))
        page.on("request", lambda request: self.requests.append(request.url))


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """A page of its own; whatever its console complains of fails the test that used it."""
    context = open_context(browser, viewport={"width": 1240, "height": 900}, color_scheme="light")
    own = Watched(context.new_page())
    own.watch()
    yield own
    context.close()
    assert own.complaints == []


@pytest.fixture
def visited(browser: Any, server: Server) -> Iterator[Callable[..., Visited]]:
    """Opens pages, and fails at the end where one of them had an error or asked somebody else."""
    opened: list[Visited] = []

    def open_page(**options: Any) -> Visited:
        opened.append(Visited(open_context(browser, **options).new_page(), server))
        return opened[-1]

    yield open_page
    troubles = [trouble for one in opened for trouble in one.list_troubles()]
    for one in opened:
        one.page.context.close()
    assert troubles == []
