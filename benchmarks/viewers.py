"""Attention in the cell of a notebook and on the page: `python -m benchmarks.viewers`. Needs a Chromium, peers and npm.

The weights of a random GPT-2 of 12 × 12 heads are shown by regard and by both views of bertviz, each as the page that a
cell's output is, alone in a fresh browser. bertviz loads three scripts from another host: they are fetched beforehand
with npm, and lie beside its page. It draws the whole of model_view, and the first layer of head_view; ours is drawn
when the map and the small pictures of all heads are. At 512 tokens our cell holds the largest of several weights, and
a kernel has the rest; bertviz's cells hold all. Then the page of a server is opened, and a hand moves over all heads.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks import peers
from benchmarks.long_recording import PAINTED, build_entry, build_time_check, find_chromium, serve
from benchmarks.results import ASIDE, FOLDER, CaseResult, Check, Entry, Result, save
from benchmarks.worker import record_setting
from regard.cli.machine import LoadMonitor
from regard.inspect.recording import Recording

LENGTHS = (64, 512)
LAYERS = HEADS = 12
HALF = 0.5  # of bertviz's bytes and of its time, at most
FIRST_PAINT, FIRST_MAP, FRAME = 1.0, 2.0, 1 / 30  # seconds, at most
PATIENCE = 60  # seconds for a page to be drawn
ENOUGH = 30  # seconds of drawing by one contender, after which it is not drawn again
SCRIPTS = {
    "d3": ("d3@5.7.0", "dist/d3.min.js"),
    "jquery": ("jquery@2.1.4", "dist/jquery.min.js"),
    "require": ("requirejs@2.3.6", "require.js"),
}
FOREIGN = re.compile(r"https://[^'\"]*/(require|d3|jquery)\.min")
OURS, MODEL, HEAD = "regard, panel", "bertviz, model_view", "bertviz, head_view"
# When each is drawn. Ours has painted the small pictures of its heads; bertviz draws at once what it draws.
DRAWN = {
    OURS: """() => {
      const panel = document.querySelector('.regard-output[data-ready=yes] > div')?.shadowRoot;
      const last = [...(panel?.querySelectorAll('.part-grid canvas') ?? [])].at(-1);
      return last?.width > 0 && last.getContext('2d').getImageData(last.width / 2, 0, 1, 1).data[3] > 0;
    }""",
    MODEL: "() => document.querySelectorAll('#vis svg line').length > 0",
    HEAD: "() => document.querySelectorAll('#vis svg line').length > 0",
}
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
# A hand that moves over the small pictures of the heads, one step for each frame; the seconds between frames.
SWEEP = """async (seconds) => {
  const root = document.querySelector('.attention');
  const heads = [...root.querySelectorAll('.part-large button, .part-large canvas')];
  const frames = [];
  const begin = performance.now();
  for (let last = begin, now = begin, step = 0; now < begin + 1000 * seconds; last = now, step += 1) {
    const one = heads[step % heads.length];
    const over = (kind) => one.dispatchEvent(new PointerEvent(kind, { bubbles: true, composed: true }));
    ['pointerover', 'pointermove', 'mouseover'].forEach(over);
    root.scrollIntoView(step % 2 ? { block: 'start' } : { block: 'end' });
    now = await new Promise(requestAnimationFrame);
    if (now > last) frames.push((now - last) / 1000);
  }
  return frames;
}"""


class Shown(NamedTuple):
    """A cell's output: its bytes, the seconds until it was drawn, and the memory of its tab; None if it never was."""

    megabytes: float
    seconds: float | None
    memory: float | None


def attend_randomly(length: int) -> tuple[torch.Tensor, ...]:
    """Return the attentions of a random GPT-2, one tensor for each layer."""
    transformers: Any = import_module("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=LAYERS, n_head=HEADS, n_embd=LAYERS * 64, attn_implementation="eager")
    with torch.no_grad():
        model = transformers.GPT2Model(config).eval()
        output = model(torch.randint(0, 50_000, (1, length)), output_attentions=True)
    attentions: tuple[torch.Tensor, ...] = output.attentions
    return attentions


def render_cells(
    attentions: tuple[torch.Tensor, ...], folder: Path, scripts: dict[str, Path]
) -> Iterator[tuple[str, Path]]:
    """The output of a cell by each contender, as the page that it is."""
    from regard.compute.notebook import render_html

    tokens = [f"w{place}" for place in range(attentions[0].shape[-1])]
    recording = Recording.from_weights(
        {f"h.{n}.attn": one[0] for n, one in enumerate(attentions)}, queries=tokens, keys=tokens
    )
    yield OURS, write_page(render_html(recording), folder / "ours.html")
    views = import_bertviz()
    for name, view in ((MODEL, views.model_view), (HEAD, views.head_view)):
        html = view(attentions, tokens, html_action="return").data
        yield name, write_page(replace_hosts(html, scripts), folder / "theirs.html")


def import_bertviz() -> Any:
    """Import bertviz from the environment of the peers, beside our own IPython."""
    folder = next(peers.FOLDER.glob("lib/python*/site-packages"))
    sys.path.append(str(folder))
    try:
        return import_module("bertviz")
    finally:
        sys.path.remove(str(folder))


def write_page(html: str, path: Path) -> Path:
    """Write the page that an output is by itself."""
    path.write_text(f"<!doctype html><meta charset=utf-8><title>cell</title><body>{html}", encoding="utf-8")
    return path


def replace_hosts(html: str, scripts: dict[str, Path]) -> str:
    """Return an output that loads its scripts from files instead of another host: they stand before its data."""
    return FOREIGN.sub(lambda found: scripts[found[1]].as_uri().removesuffix(".js"), html, count=len(scripts))


def fetch_scripts(folder: Path) -> dict[str, Path]:
    """Return the scripts that bertviz loads, by a word of their address."""
    found = {}
    for word, (package, member) in SCRIPTS.items():
        packed = subprocess.run(
            ["npm", "pack", "--silent", package], cwd=folder, capture_output=True, text=True, check=True
        )
        with tarfile.open(folder / packed.stdout.strip()) as archive:
            archive.extract(f"package/{member}", folder / word, filter="data")
        found[word] = folder / word / "package" / member
    return found


def show_cell(driver: Any, name: str, page: Path) -> Shown:
    """Show one output in a fresh browser."""
    size = page.stat().st_size / 1e6
    browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
    try:
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        tab.set_default_timeout(1000 * PATIENCE)
        begin = time.perf_counter()
        tab.goto(page.as_uri(), wait_until="commit")
        tab.wait_for_function(DRAWN[name], polling="raf")
        seconds = time.perf_counter() - begin
        return Shown(size, seconds, measure_tab(browser))
    except Exception as error:
        print(f"{name} is not drawn: {str(error).splitlines()[0]}")
        return Shown(size, None, None)
    finally:
        with contextlib.suppress(Exception):
            browser.close()


def show_repeatedly(driver: Any, name: str, page: Path, times: int) -> list[Shown]:
    """Show one output as often as is asked for, or until it has taken long enough."""
    found = [show_cell(driver, name, page)]
    while len(found) < times and all(one.seconds is not None for one in found):
        if sum(one.seconds or 0 for one in found) > ENOUGH:
            break
        found.append(show_cell(driver, name, page))
    return found


def measure_tab(browser: Any) -> float:
    """Return the largest resident set, in megabytes, of the processes that show pages."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    tabs = [Path(f"/proc/{one['id']}/status").read_text() for one in processes if one["type"] == "renderer"]
    return max(int(found[1]) / 1000 for text in tabs if (found := re.search(r"VmHWM:\s+(\d+) kB", text)))


def compare_cells(driver: Any, length: int, times: int, folder: Path, scripts: dict[str, Path]) -> list[CaseResult]:
    """Compare bytes, time and memory of the same weights by each contender."""
    name = f"{LAYERS} × {HEADS} heads, {length} tokens"
    found: dict[str, list[Shown]] = {}
    for who, page in render_cells(attend_randomly(length), folder, scripts):
        found[who] = show_repeatedly(driver, who, page, times)
        page.unlink()
    return [
        build_case(
            f"{name}, bytes of the cell",
            "MB",
            {who: [one.megabytes for one in shown] for who, shown in found.items()},
            HALF,
        ),
        build_case(
            f"{name}, time to draw", "s", {who: [one.seconds for one in shown] for who, shown in found.items()}, HALF
        ),
        build_case(
            f"{name}, memory of the tab",
            "MB",
            {who: [one.memory for one in shown] for who, shown in found.items()},
            None,
        ),
    ]


def build_case(name: str, unit: Any, found: dict[str, list[Any]], bound: float | None) -> CaseResult:
    """Return a case with its contenders; those that were never drawn count as longer than anybody waits, or missing."""
    entries: list[Entry] = []
    missing = {}
    for who, values in found.items():
        if None not in values:
            entries.append(build_entry(who, values))
        elif unit == "s":
            entries.append(Entry(who, PATIENCE, PATIENCE, PATIENCE, 1, over=True))
        else:
            missing[who] = f"not drawn within {PATIENCE} s, or the browser gave up"
    ours, *others = entries
    checks = [
        Check(f"of {one.name}", ours.median / one.median, ours.low / one.high, ours.high / one.low, "most", bound)
        for one in others
        if bound is not None
    ]
    return CaseResult(name, unit, entries, checks, missing, measured=name.rpartition(", ")[2])


def visit_page(driver: Any, times: int, seconds: float, folder: Path) -> list[CaseResult]:
    """Measure the first paint and the first map of a page, and frames while a hand moves over 12 × 12 heads."""
    tables = {f"h.{n}.attn": one[0] for n, one in enumerate(attend_randomly(LENGTHS[0]))}
    Recording.from_weights(tables).save(folder / "heads.safetensors")
    paints, maps = [], []
    with serve(folder / "heads.safetensors") as url:
        browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = open_page(browser, url)  # the server is warm from here on
        for _ in range(times):
            page.close()
            begin = time.perf_counter()
            page = open_page(browser, url)
            maps.append(time.perf_counter() - begin)
            paints.append(page.evaluate(PAINT))
        page.get_by_role("button", name="All heads").click()
        page.wait_for_function("() => document.querySelectorAll('.part-large canvas').length > 100")
        frames = page.evaluate(SWEEP, seconds)
        browser.close()
    bounds = {
        "first paint": (paints, FIRST_PAINT),
        "first map": (maps, FIRST_MAP),
        "frame over all heads": (frames, FRAME),
    }
    entries = [build_entry(name, values) for name, (values, _) in bounds.items()]
    checks = [build_time_check(one, bounds[one.name][1]) for one in entries]
    return [CaseResult(f"the page, {LAYERS} × {HEADS} heads of {LENGTHS[0]} tokens", "s", entries, checks)]


def open_page(browser: Any, url: str) -> Any:
    """Open the page of a server, and wait until its first map is drawn."""
    page = browser.new_page(viewport={"width": 1440, "height": 900}, locale="en-US")
    page.goto(f"{url}#view=recording&file=heads.safetensors")
    page.wait_for_function(PAINTED, polling="raf")
    return page


def main() -> int:
    """Measure, print, save; 1 if a floor is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.viewers", description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    parser.add_argument("--times", type=int, default=5, help="how often each cell is drawn")
    parser.add_argument("--seconds", type=float, default=5.0, help="of moving over the heads")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    peers.install()
    load, watch, cases = os.getloadavg()[0], LoadMonitor(), []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        scripts = fetch_scripts(folder)
        for length in given.lengths:
            cases += compare_cells(driver, length, given.times, folder, scripts)
        cases += visit_page(driver, given.times, given.seconds, folder)
    quick = tuple(given.lengths) != LENGTHS
    found = Result(
        "viewers",
        "Attention in a cell and on the page",
        record_setting(torch.get_num_threads(), load, watch, quick=quick),
        cases,
    )
    for case in cases:
        print(case.name, json.dumps({one.name: round(one.median, 4) for one in case.entries}), case.missing or "")
    print(save(found, ASIDE if quick else FOLDER))
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
