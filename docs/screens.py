"""Take the pictures of the page, of a notebook and of a report.

    python docs/screens.py RUN RUN CAPTIONER [PICTURE …]
    python docs/screens.py notebook RUN TEXT
    python docs/screens.py report RUN TEXT

Of the page, the first two runs are translators of the same text, the first of them a Transformer, the third is one of
`regard train captioning` with its own scenes; pictures that are named are taken alone, such as page-ask.
Of the notebook, a translator is asked about a text in a cell, which is run, converted and opened.
Of the report, a translator is asked by `regard show --html`.
Needs a Chromium on the machine (REGARD_CHROMIUM holds its path if it has another name), playwright and pillow.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

FOLDER = Path(__file__).parent
TEXT = "Two years ago the doctor lost a black book at the station."
DESKTOP, PHONE = {"width": 1180, "height": 1040}, {"width": 360, "height": 780}
NOTEBOOK = {"width": 1080, "height": 960}
NOTEBOOK_CELL = """import regard
from regard.tasks.translation import TranslationSearchOptions
from regard.tasks.translation.attention import record_translation

translator = regard.load("runs/{run}").predictor.translator
text = "{text}"
[result] = translator.translate([text], TranslationSearchOptions())
record_translation(translator, result.ids, result.best[0].ids)"""
READY = ".regard-grid button"


def list_views(first: str, second: str, captioner: str) -> dict[str, tuple[dict[str, int], dict[str, str], str]]:
    """Return each picture by name: the size of the window, the state of the page, and the selector to wait for."""
    question = {"text": TEXT, "run": first, "lang": "en", "theme": "light"}
    return {
        "page": (DESKTOP, question | {"head": "0", "pick": "r12c7"}, ".regard-terms"),
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
    """Take one picture."""
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
    reduce_colors(path)
    page.context.close()


def reduce_colors(path: Path) -> None:
    """Write a picture again in few colors, so that its file is small."""
    from PIL import Image

    Image.open(path).convert("RGB").quantize(160, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def take_notebook(run: Path, text: str) -> None:
    """Run a cell that asks a translator, and take a picture of the cell and its panel."""
    import nbformat
    from nbconvert import HTMLExporter
    from nbconvert.preprocessors import ExecutePreprocessor
    from playwright.sync_api import sync_playwright

    code = NOTEBOOK_CELL.format(run=run.name, text=text)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "runs").mkdir()
        (folder / "runs" / run.name).symlink_to(run.resolve())
        ExecutePreprocessor(timeout=600).preprocess(notebook, {"metadata": {"path": name}})
        (folder / "cell.html").write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
            page = browser.new_context(viewport=NOTEBOOK, device_scale_factor=1.5).new_page()
            page.goto((folder / "cell.html").as_uri(), wait_until="domcontentloaded")
            page.wait_for_selector(".regard-output[data-ready=yes]", timeout=60_000)
            page.wait_for_timeout(500)
            page.screenshot(path=FOLDER / "notebook.png")
            browser.close()
    reduce_colors(FOLDER / "notebook.png")


def take_report(run: Path, text: str) -> None:
    """Write a report of a translation, and take a picture of it."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        file = Path(name) / "report.html"
        subprocess.run([sys.executable, "-m", "regard", "show", str(run), text, "--html", str(file)], check=True)
        browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_context(viewport=DESKTOP, device_scale_factor=1, locale="en-US").new_page()
        page.goto(file.as_uri())
        page.wait_for_selector("#report[data-ready=yes]", timeout=60_000)
        page.wait_for_timeout(500)
        page.screenshot(path=FOLDER / "report.png")
        browser.close()
    reduce_colors(FOLDER / "report.png")


def find_chromium() -> str | None:
    """Return the browser of this machine."""
    return os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def main() -> None:
    """Serve the runs and take all pictures; or that of a notebook or a report alone."""
    from playwright.sync_api import sync_playwright

    alone = {"notebook": take_notebook, "report": take_report}
    if sys.argv[1] in alone:
        alone[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
        return
    runs = [Path(argument).resolve() for argument in sys.argv[1:4]]
    command = [sys.executable, "-m", "regard", "serve", *map(str, runs), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = re.findall(r"http\S+", server.stdout.readline() if server.stdout else "")[0]
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
            views = list_views(*(run.name for run in runs))
            for name in sys.argv[4:] or views:
                take_picture(browser, url, name, views[name])
            browser.close()
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
