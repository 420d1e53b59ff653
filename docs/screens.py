"""Take the pictures of the page: `python docs/screens.py RUN RUN CAPTIONER`.

The first two are translators of the same text, the third is a run of `regard train captioning` with its own scenes.
Needs a Chromium on the machine (REGARD_CHROMIUM holds its path if it has another name), playwright and pillow.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

FOLDER = Path(__file__).parent
TEXT = "a man in a red shirt is playing the guitar ."
DESKTOP, PHONE = {"width": 1180, "height": 1040}, {"width": 360, "height": 780}
READY = ".regard-grid button"


def list_views(first: str, second: str, captioner: str) -> dict[str, tuple[dict[str, int], dict[str, str], str]]:
    """Return each picture by name: the size of the window, the state of the page, and the selector to wait for."""
    question = {"text": TEXT, "run": first, "lang": "en", "theme": "light"}
    return {
        "page": (DESKTOP, question | {"pick": "r4"}, READY),
        "page-compare": (DESKTOP, question | {"with": second, "theme": "dark"}, "text=translation:"),
        "page-chinese": (DESKTOP, question | {"lang": "zh", "drawing": "lines"}, READY),
        "page-ask": (
            DESKTOP,
            {"view": "ask", "run": captioner, "example": "yes", "pick": "r1", "lang": "en"},
            ".regard-frame",
        ),
        "page-phone": (PHONE, question | {"theme": "dark"}, READY),
    }


def take_picture(browser: Any, url: str, name: str, view: tuple[dict[str, int], dict[str, str], str]) -> None:
    """Take one picture, in few colors so that the file is small."""
    from PIL import Image

    size, state, ready = view
    page = browser.new_context(viewport=size, device_scale_factor=1).new_page()
    page.goto(f"{url}#{urlencode(state)}")
    page.wait_for_selector(ready, timeout=60_000)
    page.wait_for_timeout(500)
    if name == "page-compare":
        page.evaluate("() => document.querySelector('.triple').parentElement.scrollIntoView()")
        page.evaluate("() => scrollBy(0, -70)")
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(160, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes")
    page.context.close()


def main() -> None:
    """Serve the runs and take all pictures."""
    from playwright.sync_api import sync_playwright

    runs = [Path(argument).resolve() for argument in sys.argv[1:4]]
    chromium = os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    command = [sys.executable, "-m", "regard", "serve", *map(str, runs), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = re.findall(r"http\S+", server.stdout.readline() if server.stdout else "")[0]
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, view in list_views(*(run.name for run in runs)).items():
                take_picture(browser, url, name, view)
            browser.close()
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
