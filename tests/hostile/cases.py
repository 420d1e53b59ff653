"""Make hostile cases of each kind, give them to the library or the server, and check the response."""

import io
import json
import logging
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

import regard
from regard.cli.run_list import summarize_run
from regard.cli.show_curves import read_curves
from regard.errors import RegardError
from regard.inspect.recording import Recording
from regard.inspect.recording.file import read_recording
from regard.tasks.images import open_photo
from regard.tasks.speech.sound import decode_sound
from regard.web.limits import Limits
from regard.web.responses import HANDLERS
from regard.web.routes import Routes
from regard.web.runs import Runs
from regard.web.store import Files
from tests.hostile.damage import VALUES, damage, damage_json, make_images, make_sounds, to_json
from tests.inspect.recording.made import make_every_kind
from tests.web.tiny_runs import MODELS, SMALL, make_run, make_untrained

BINARY = {"Content-Type": "application/octet-stream"}
LIMITS = Limits(characters=200, tokens=24, beam=3, kept=2**26, seconds=600.0)
PARTS = {  # what each part of a recording is asked with
    "labels": ("site",),
    "table": ("site",),
    "rows": ("site", "head"),
    "weight": ("site", "head", "row", "column"),
    "explanation": ("site", "head", "row", "column"),
    "tile": ("site", "head", "row", "column", "up", "across"),
    "bundle": (),
}
GIVEN = {"captioning": 0, "speech": 1}


class ErrorLog(logging.Handler):
    """Collect the errors that a terminal would show."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.faults.append(f"{record.getMessage()} {record.exc_info[1] if record.exc_info else ''!r}")


class HostileCases:
    """Runs, a server of them, and the good files that are damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder_path = folder
        self.runs = {name: make_run(folder / name, name) for name in ("transformer", "bahdanau")}
        self.runs |= {task: make_untrained(folder / task, task) for task in SMALL}
        self.copies = folder / "copies"
        for name, run in self.runs.items():
            shutil.copytree(run, self.copies / name)
        self.images, self.sounds, self.recordings = make_images(), make_sounds(), [self.make_recording()]
        self.served = Runs(self.runs, LIMITS)
        routes = Routes(self.served, Files({}, 1), LIMITS)
        app = Starlette(routes=routes.list_routes(), exception_handlers=HANDLERS)
        self.client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        self.shown = ErrorLog()
        for name in ("regard.web", "asyncio", "uvicorn.error"):
            logging.getLogger(name).addHandler(self.shown)
            logging.getLogger(name).propagate = False

    def make_recording(self) -> bytes:
        recording = Recording(make_every_kind(), metadata={"a": [1, "看"]}, notes=["a note"])
        recording.label([str(number) for number in range(5)], None)
        recording.save(self.folder_path / "good")
        return (self.folder_path / "good").read_bytes()

    @property
    def kinds(self) -> dict[str, Callable[[Random], None]]:
        return {
            "image": self.try_image,
            "sound": self.try_sound,
            "recording": self.try_recording,
            "run folder": self.try_folder,
            "command": self.try_command,
            "body": self.try_body,
        }

    def try_image(self, random: Random) -> None:
        content = damage(random.choice(self.images), random)
        if random.random() < 0.1:
            self.judge(self.client.post("/api/runs/captioning/ask", content=content, headers=BINARY))
        else:
            check_error(lambda: open_photo(content, "a", most=LIMITS.pixels))

    def try_sound(self, random: Random) -> None:
        content = damage(random.choice(self.sounds), random)
        if random.random() < 0.1:
            self.judge(self.client.post("/api/runs/speech/ask", content=content, headers=BINARY))
        else:
            check_error(lambda: decode_sound(io.BytesIO(content), "a", 8000, longest=LIMITS.listening))

    def try_recording(self, random: Random) -> None:
        content = random.choice(self.recordings)
        content = damage(content, random) if random.random() < 0.5 else damage_header(content, random)
        if random.random() < 0.3:
            answer = self.judge(self.client.post("/api/recordings", content=content, headers=BINARY))
            if answer.status_code == 200:
                self.look(answer.json(), random)
        else:
            path = self.folder_path / "file"
            path.write_bytes(content)
            check_error(lambda: read_recording(path, LIMITS.upload))

    def check_parts(self) -> None:
        """Check that a recording which is not damaged answers each way in which the damaged ones are asked."""
        answer = self.client.post("/api/recordings", content=self.recordings[0], headers=BINARY)
        assert set(self.look(answer.json(), Random(1))) == set(PARTS)

    def look(self, found: dict[str, Any], random: Random) -> list[str]:
        """Request every part of a recording that was accepted; return those that were answered."""
        answered = []
        for number, _ in list(enumerate(found["sites"]))[:4]:
            values = dict.fromkeys(("row", "column", "up", "across"), 0)
            values |= {"site": number, "head": random.choice(["mean", 0, 1])}
            for part, names in PARTS.items():
                query = {name: values[name] for name in names}
                answer = self.judge(self.client.get(f"/api/recordings/{found['recording']}/{part}", params=query))
                answered += [part] if answer.status_code == 200 else []
        return answered

    def try_folder(self, random: Random) -> None:
        """Damage a file of a run, query the run, and restore the file."""
        with self.damage_run(random) as name:
            state = self.judge(self.client.get("/api/state")).json()["runs"]
            broken = [run["name"] for run in state if "error" in run]
            assert set(broken) <= {name}, f"{broken} are broken because {name} is"
            self.ask(name, random)

    def try_command(self, random: Random) -> None:
        """Damage a file of a run, and do what commands do with a run."""
        with self.damage_run(random) as name:
            check_error(lambda: summarize_run(self.runs[name]))
            check_error(lambda: read_curves(self.runs[name]))
            words = ["one two"] if name in MODELS else []
            check_error(lambda: regard.load(self.runs[name]).predict(*words))

    @contextmanager
    def damage_run(self, random: Random) -> Iterator[str]:
        """Damage a file of a run while the block runs; yield the name of the run."""
        name = random.choice(list(self.runs))
        files = [path for path in sorted((self.copies / name).rglob("*")) if path.is_file() and path.stat().st_size]
        own = random.choice(files)
        path = self.runs[name] / own.relative_to(self.copies / name)
        content = own.read_bytes()
        damaged = damage(content, random)
        if own.suffix == ".json" and random.random() < 0.5:
            damaged = to_json(damage_json(json.loads(content), random))
        elif own.suffix == ".jsonl" and random.random() < 0.7:
            damaged = b"\n".join(to_json(damage_json(json.loads(line), random)) for line in content.splitlines())
        elif own.suffix == ".toml" and random.random() < 0.7:
            damaged = damage_lines(content, random)
        path.write_bytes(damaged)
        self.served[name].loaded = None
        try:
            yield name
        finally:
            path.write_bytes(content)
            self.served[name].loaded = None

    def ask(self, name: str, random: Random) -> None:
        if name in GIVEN:
            content = (self.images, self.sounds)[GIVEN[name]][0]
            self.judge(self.client.post(f"/api/runs/{name}/ask", content=content, headers=BINARY))
        elif name == "reading":
            path = f"/api/runs/{name}/ask?question=who%3F"
            self.judge(self.client.post(path, content=b"Anna lives in Rome.", headers=BINARY))
        else:
            path = random.choice(["/api/translate", "/api/attention"])
            more = {"target": "two"} if path.endswith("attention") else {"beam": 2}
            self.judge(self.client.post(path, json={"run": name, "text": "one two", **more}))

    def try_body(self, random: Random) -> None:
        question = {"run": "transformer", "text": "one two", "beam": 2, "seed": 1, "temperature": 0.5, "masked": [0]}
        path = random.choice(["/api/translate", "/api/attention", "/api/files/x", "/api/runs/reading/ask"])
        if path.endswith("attention"):
            question = {"run": "bahdanau", "text": "one", "target": "two"}
        content = to_json(damage_json(question, random))
        content = damage(content, random) if random.random() < 0.5 else content
        kind = random.choice(["application/json"] * 6 + ["text/plain", "application/octet-stream", "x" * 200])
        query = {random.choice(["question", "example", "start", "a"]): str(random.choice(VALUES))[:300]}
        query = {name: text.encode("utf-8", "replace").decode() for name, text in query.items()}
        params = query if random.random() < 0.3 else {}
        self.judge(self.client.post(path, content=content, headers={"Content-Type": kind}, params=params))

    def judge(self, answer: Any) -> Any:
        """Check that there is no fault, nothing in the terminal, and one sentence if it is an error."""
        assert not self.shown.faults, self.shown.faults.pop()
        assert answer.status_code < 500, f"{answer.status_code}: {answer.text[:300]}"
        assert "error of its own" not in answer.text, answer.text[-300:]
        assert str(self.folder_path) not in answer.text, answer.text[:300]
        if answer.status_code != 200:
            check_sentence(answer.json()["error"])
        return answer


def check_error(work: Callable[[], object]) -> None:
    """Call `work`; an error of ours must be one sentence."""
    try:
        work()
    except RegardError as error:
        check_sentence(str(error))


def check_sentence(text: str) -> None:
    assert ": got " in text, text[:300]
    assert "; fix: " in text, text[:300]
    assert "\n" not in text, text[:300]


def damage_header(content: bytes, random: Random) -> bytes:
    """Return a recording with another header and the same numbers."""
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    about = json.loads(header["__metadata__"]["regard"])
    if random.random() < 0.7:
        header["__metadata__"]["regard"] = json.dumps(damage_json(about, random))
    else:
        header = damage_json(header, random)
    text = to_json(header)
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


def damage_lines(content: bytes, random: Random) -> bytes:
    """Return a configuration in which some lines are changed, missing, or repeated."""
    lines = []
    for line in content.decode().splitlines():
        chance = random.random()
        name, equals, _ = line.partition(" = ")
        if chance < 0.06 and equals:
            value = random.choice(VALUES)
            line = f"{name} = {value if isinstance(value, int | float) and value is not True else json.dumps(value)}"
        lines += [] if 0.06 <= chance < 0.08 else [line, line] if 0.08 <= chance < 0.09 else [line]
    return "\n".join(lines).encode("utf-8", "replace")
