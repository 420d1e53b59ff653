"""A self-attention of 32,768 tokens on the page: `python -m benchmarks.long_recording`. Needs a Chromium.

It is observed and saved; then a first picture is drawn of it in Python and one on the page, and a hand pans and zooms
there. Script time is of the page's own thread, so that it says the same on a busy machine; frames are as they came.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from benchmarks.contenders.observation import LongAttention, ModelSizes, draw_long_inputs
from benchmarks.results import ASIDE, FOLDER, ROOT, CaseResult, Check, Entry, Result, save
from benchmarks.worker import record_setting
from regard.cli.machine import LoadMonitor
from regard.compute.timing import summarize
from regard.inspect.observe import observe
from regard.inspect.recording import Recording

FIRST = 2.0  # seconds to a first picture, at most
FRAME = 1 / 30  # seconds of a frame, at most

# Resolves when something is painted in the middle of the map.
PAINTED = """() => {
  const canvas = document.querySelector('.attention canvas.regard-heatmap-canvas');
  return canvas?.getContext('2d').getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data[3] > 0;
}"""

# A hand that drags over the map, or turns the wheel there, each time a frame is drawn; the seconds between frames.
MOVE = """async ({ how, seconds }) => {
  const canvas = document.querySelector('.attention canvas.regard-heatmap-canvas');
  const box = canvas.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const at = (dx, dy) => ({ pointerId: 1, clientX: x + dx, clientY: y + dy, bubbles: true, cancelable: true });
  const pointer = (kind, dx, dy) => canvas.dispatchEvent(new PointerEvent(kind, at(dx, dy)));
  canvas.setPointerCapture = () => {};
  canvas.focus();
  if (how === 'pan') pointer('pointerdown', 0, 0);
  const begin = performance.now();
  const frames = [];
  for (let last = begin, now = begin; now < begin + 1000 * seconds; last = now) {
    const turn = (now - begin) / 300;
    if (how === 'pan') pointer('pointermove', 150 * Math.sin(turn), 150 * Math.sin(turn * 0.7));
    else canvas.dispatchEvent(new WheelEvent('wheel', { ...at(40, 20), deltaY: turn % 20 < 10 ? -50 : 50 }));
    now = await new Promise(requestAnimationFrame);
    if (now > last) frames.push((now - last) / 1000);
  }
  if (how === 'pan') pointer('pointerup', 0, 0);
  return frames;
}"""


def observe_long(length: int, folder: Path) -> tuple[Path, list[Entry]]:
    """Record to a file; return how long it took to observe, and to draw a picture of it in Python."""
    from regard.inspect.draw.alignment import draw_alignment
    from regard.inspect.draw.chapters import pool_labels
    from regard.inspect.draw.output import save_figure as draw

    model, (query, key) = LongAttention(), draw_long_inputs(ModelSizes(1, length, 64, 1))
    begin = time.perf_counter()
    with torch.no_grad(), observe(model, keep="tiles") as recording:
        model(query, key)
    seen = time.perf_counter()
    table = recording["LongAttention"].downsample(0, how="max").numpy()
    names = pool_labels(None, length, len(table))
    draw(draw_alignment(table, names, names), folder / "first.png")
    drawn = time.perf_counter()
    Recording(recording).save(folder / "long.safetensors")
    return folder / "long.safetensors", [
        build_single_entry("observed", seen - begin),
        build_single_entry("first picture, Python", drawn - seen),
    ]


def build_single_entry(name: str, seconds: float) -> Entry:
    return Entry(name, seconds, seconds, seconds, 1)


def build_entry(name: str, seconds: list[float]) -> Entry:
    found = summarize(seconds)
    return Entry(name, found.median, found.low, found.high, len(seconds))


def visit_page(page: Any, url: str, seconds: float) -> list[Entry]:
    """Measure the first picture of the page, then frames and their scripts while a hand pans and zooms."""
    begin = time.perf_counter()
    page.goto(f"{url}#view=recording&file=long.safetensors")
    page.wait_for_function(PAINTED, polling="raf")
    entries = [build_single_entry("first picture, page", time.perf_counter() - begin)]
    for _ in range(6):
        page.keyboard.press("Tab")
    scripted = start_script_clock(page)
    for how in ("pan", "zoom"):
        page.evaluate("() => document.querySelector('.attention canvas').map.zoom(12)")
        before = scripted()
        frames = page.evaluate(MOVE, {"how": how, "seconds": seconds})
        entries += [
            build_entry(f"frame, {how}", frames),
            build_single_entry(f"script of a frame, {how}", (scripted() - before) / len(frames)),
        ]
        page.evaluate("() => document.querySelector('.attention canvas').map.fit()")
    return entries


def start_script_clock(page: Any) -> Callable[[], float]:
    """Return a clock of the processor time that the page's scripts have run."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def clock() -> float:
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return float(metrics["ScriptDuration"])

    return clock


def find_chromium() -> str | None:
    """Return the browser of this machine; None: the one that playwright brought."""
    return os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def serve(file: Path) -> Iterator[str]:
    """Yield the address of a server that shows a recording."""
    command = [sys.executable, "-m", "regard", "serve", str(file), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield re.findall(r"http\S+", server.stdout.readline() if server.stdout else "")[0]
    finally:
        server.terminate()
        server.wait(20)


def measure(given: argparse.Namespace) -> list[Entry]:
    """Measure everything once."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file, entries = observe_long(given.length, Path(folder))
        with serve(file) as url:
            browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            entries += visit_page(page, url, given.seconds)
            browser.close()
    return entries


def build_time_check(entry: Entry, bound: float) -> Check:
    """Return the check that something takes no longer than a bound."""
    says = f"to the {entry.name}" if "first" in entry.name else f"for a {entry.name}"
    return Check(says, entry.median, entry.low, entry.high, "most", bound, "s")


def build_result(entries: list[Entry], given: argparse.Namespace, watch: LoadMonitor, load: float) -> Result:
    """Return the figures in the form that all measurements have."""
    checks = [
        build_time_check(entry, FIRST if "first" in entry.name else FRAME)
        for entry in entries
        if entry.name != "observed"
    ]
    case = CaseResult(f"{given.length:,} × {given.length:,} weights", "s", entries, checks)
    quick = given.length < 32_768
    setting = record_setting(torch.get_num_threads(), load, watch, quick=quick)
    return Result("long_recording", "A long attention on the page", setting, [case])


def main() -> int:
    """Measure, print, save; 1 where something took longer than is claimed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_recording", description=__doc__)
    parser.add_argument("--length", type=int, default=32_768)
    parser.add_argument("--seconds", type=float, default=5.0, help="of panning, and of zooming")
    given = parser.parse_args()
    load, watch = os.getloadavg()[0], LoadMonitor()
    found = build_result(measure(given), given, watch, load)
    for entry in found.cases[0].entries:
        print(f"{entry.name}: {1000 * entry.median:,.1f} ms")
    print(save(found, ASIDE if found.setting.quick else FOLDER))
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
