"""A run that was really trained, a server process for it, and pages that are watched."""

import fcntl
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SETTINGS = """
[vocabulary.source]
kind = "word"
[vocabulary.target]
kind = "word"
[model]
encoder = "transformer"
decoder = "transformer"
size = 16
tied = "none"
dropout = 0.0
[model.transformer]
layers = 1
decoder_layers = 2
heads = 2
hidden = 16
[learning]
budget = 256
[measure]
most = 4
[training]
threads = 1
[training.optimizer]
[training.stop]
steps = 60
[training.every]
log = 5
evaluate = 30
save = 30
"""
PATIENCE = int(os.environ.get("REGARD_PATIENCE", 600_000))  # milliseconds until a journey gives up waiting
ENGLISH = ["one", "two", "three", "four", "five", "six"]
CHINESE = ["一", "二", "三", "四", "五", "六"]
FRENCH = ["un", "deux", "trois", "quatre", "cinq", "six"]


def start_command(*arguments: object, folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "regard", *map(str, arguments)],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def share_folder(own: Path, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder with runs that are trained once and that test processes share."""
    place = own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own
    folder = place / name
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            folder.mkdir()
            make(folder)
            (folder / "done").touch()
    return folder


def train(*arguments: object, folder: Path) -> None:
    """Train to the end."""
    process = start_command("train", *arguments, folder=folder)
    output, _ = process.communicate(timeout=800)
    assert process.returncode == 0, output


def train_translators(folder: Path) -> None:
    """Train the runs `later` and `earlier`, of one training."""
    draw = random.Random(2)
    rows = [[draw.randrange(6) for _ in range(draw.randint(2, 4))] for _ in range(300)]
    languages = [draw.choice((ENGLISH, CHINESE)) for _ in rows]
    sources = [" ".join(words[number] for number in row) for words, row in zip(languages, rows, strict=True)]
    targets = [" ".join(FRENCH[number] for number in row) for row in rows]
    for name, lines in (("text.src", sources), ("text.fr", targets)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "tiny.toml").write_text(SETTINGS.replace("[training.optimizer]\n", ""))
    files = ("text.src", "text.fr")
    train("translation", *files, "--config", "tiny.toml", "--folder", "later", folder=folder)
    shutil.copytree(folder / "later", folder / "earlier")
    before = folder / "later" / "checkpoints" / "000000030" / "weights.safetensors"
    shutil.copyfile(before, folder / "copy")
    (folder / "copy").replace(folder / "earlier" / "weights.safetensors")


def train_observers(folder: Path) -> None:
    """Train the runs `scenes`, a captioner, and `tones`, a recognizer, on the data that the tasks generate."""
    short = ("--stop.epochs", "none", "--stop.target", "none", "--schedule.warmup", 5, "--training.threads", 1)
    scenes = ("--data.scenes", 60, "--data.held_out", 2, "--learning.budget", 100, "--stop.steps", 30)
    train("captioning", "--folder", "scenes", *scenes, *short, folder=folder)
    tones = ("--data.size", 24, "--data.held_out", 2, "--learning.budget", 1500, "--stop.steps", 12)
    train("speech", "--folder", "tones", *tones, *short, folder=folder)


def open_context(browser: Any, **options: Any) -> Any:
    """Return a window of a browser that waits for as long as a busy machine needs."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-US"} | options)
    context.set_default_timeout(PATIENCE)
    return context


# Ends when nothing was about to change for so many frames after one another.
SETTLED = """async (frames) => {
  for (let quiet = 0; quiet < frames; quiet += 1) {
    await new Promise(requestAnimationFrame);
    if (document.querySelector("[aria-busy=true]")) quiet = -1;
  }
}"""


def settle(page: Any, frames: int = 2) -> None:
    """Wait until nothing on a page is about to change, and until what changed is painted."""
    page.evaluate(SETTLED, frames)


class Server:
    """`regard serve`, as a process that can be ended and begun again on the same port."""

    def __init__(self, folder: Path, *paths: object) -> None:
        self.folder, self.paths, self.port = folder, paths, 0
        self.start()

    def start(self) -> None:
        self.process = start_command("serve", *self.paths, "--port", self.port, folder=self.folder)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\n", line)
        assert found, line + (self.process.stdout.read() if self.process.poll() is not None else "")
        self.port = int(found.group(1))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=300)


# Tells the test of requests that the page itself aborts, because a newer one replaces them.
NOTE_ABORTS = """
const original = window.fetch;
window.fetch = (path, options) => {
  options?.signal?.addEventListener("abort", () => window.noteAbort(new URL(path, location.href).href));
  return original(path, options);
};
"""


class PageVisit:
    """A page, and everything on it that should not have been."""

    def __init__(self, page: Any, server: Server) -> None:
        self.page, self.server, self.troubles = page, server, []
        self.aborts: Counter[str] = Counter()
        self.excuses: Counter[str] = Counter()
        page.expose_function("noteAbort", lambda url: self.aborts.update([url]))
        page.add_init_script(NOTE_ABORTS)
        page.on("console", lambda message: self.note(message.type in ("error", "warning"), f"console: {message.text}"))
        page.on("pageerror", lambda error: self.note(True, f"error: {error}"))
        page.on("requestfailed", lambda request: self.note(True, f"failed: {request.url} {request.failure}"))
        page.on("response", lambda response: self.note(response.status >= 400, f"{response.status}: {response.url}"))
        page.on("request", lambda request: self.note(self.is_foreign(request.url), f"elsewhere: {request.url}"))

    def list_troubles(self) -> list[str]:
        """Return what went wrong, except requests that the page aborted on purpose and what a test excused."""
        excused = Counter({f"failed: {url} net::ERR_ABORTED": count for url, count in self.aborts.items()})
        left, excuses = (Counter(self.troubles) - excused).elements(), self.excuses.copy()
        return [trouble for trouble in left if not self.is_excused(trouble, excuses)]

    def is_excused(self, trouble: str, excuses: Counter[str]) -> bool:
        """Return whether an excuse is left for a trouble; it is used up."""
        part = next((part for part, count in excuses.items() if count and part in trouble), None)
        excuses.subtract([] if part is None else [part])
        return part is not None

    def excuse(self, part: str, times: int) -> None:
        """Expect troubles with a text: the console may tell of one after the page has, so that none is awaited."""
        self.excuses[part] = times

    def note(self, wrong: bool, text: str) -> None:
        if wrong:
            self.troubles.append(text)

    def is_foreign(self, url: str) -> bool:
        return not url.startswith((self.server.url, "blob:", "data:"))

    def open(self, state: str = "") -> Any:
        self.page.goto(f"{self.server.url}#{state}")
        return self.page


@dataclass
class WatchedPage:
    """A page, with the complaints of its console and the addresses that it requested."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        page = self.page
        page.on(
            "console", lambda line: self.complaints.append(line.text) if line.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))
        page.on("request", lambda request: self.requests.append(request.url))
