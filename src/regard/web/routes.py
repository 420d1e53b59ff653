"""What the page can ask for."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from regard.datasets.bounds import most
from regard.errors import sentence
from regard.inspect.recording import Recording
from regard.inspect.recording.file import read as read_recording
from regard.tasks.predicting import Prediction
from regard.web import recordings
from regard.web.answers import RefusedError, answer_json, refuse
from regard.web.asking import GIVEN, Item
from regard.web.attention import recorded, wanted
from regard.web.bodies import UNIVERSAL, Fields, read, read_fields
from regard.web.events import head_of_stream, streamed
from regard.web.limits import Limits
from regard.web.metrics import LARGEST, Followers
from regard.web.runs import Runs
from regard.web.store import Files, Store
from regard.web.translation import Question, Source, answer
from regard.web.work import Ticket, Workers

STATIC = Path(__file__).parent / "static"
FRESH = {"Cache-Control": "no-cache"}  # asked again each time, by its tag: a new version is seen at once
SETTLED = {"Cache-Control": "private, max-age=3600"}  # what has this name never changes
SAID = ("text", "question", "shares", "notes")  # of what a prediction says, for the page
Part = Callable[[Fields, Recording, Ticket], Any]  # of a recording, as it is asked for


class Routes:
    """The answers, and what they are made from."""

    def __init__(self, runs: Runs, files: Files, limits: Limits) -> None:
        self.runs, self.files, self.limits = runs, files, limits
        self.store, self.workers, self.followers = Store(limits.kept), Workers(limits), Followers(limits)
        self.uploads = 0  # that are arriving or being read

    def all(self) -> list[BaseRoute]:
        tables: dict[str, Callable[[Request], Any]] = {
            "labels": self.labels,
            "table": self.table,
            "tile": self.tile,
            "rows": self.rows,
            "weight": self.weight,
        }
        return [
            Route("/", self.page),
            Route("/api/state", self.state),
            Route("/api/translate", self.translate, methods=["POST"]),
            Route("/api/attention", self.attention, methods=["POST"]),
            Route("/api/runs/{run}/ask", self.ask, methods=["POST"]),
            Route("/api/runs/{run}/metrics", self.metrics),
            Route("/api/recordings", self.upload, methods=["POST"]),
            Route("/api/files/{title}", self.file, methods=["POST"]),
            Route("/api/recordings/{name}", self.recording),
            *(Route(f"/api/recordings/{{name}}/{part}", method) for part, method in tables.items()),
            Mount("/static", Static(directory=STATIC)),
        ]

    def close(self) -> None:
        """End what is under way: the server ends."""
        self.followers.ended = True
        self.workers.close()

    async def page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers=FRESH)

    async def state(self, request: Request) -> Response:
        """Which runs and recordings there are."""
        names = ("characters", "tokens", "beam", "upload", "file", "passage", "cells")
        limits = {name: getattr(self.limits, name) for name in names}

        def work(ticket: Ticket) -> Response:
            facts = [run.facts(ticket) for run in self.runs.values()]
            return answer_json({"runs": facts, "files": list(self.files.paths), "limits": limits})

        return await self.workers.run(work)

    async def fields(self, request: Request) -> Fields:
        return await read_fields(request, self.limits.body, self.limits.patience)

    async def translate(self, request: Request) -> Response:
        """A translation, event by event."""
        fields = await self.fields(request)
        run = self.runs[fields.text("run", most("request", "name"))]
        question = Question.of(fields, self.limits)
        fields.finish()
        events = self.workers.stream(lambda ticket: answer(run.translator(), question, self.limits, ticket))
        return streamed(events)

    async def attention(self, request: Request) -> Response:
        """All attention behind one translation."""
        fields = await self.fields(request)
        run = self.runs[fields.text("run", most("request", "name"))]
        source = Source.of(fields, self.limits)

        def work(ticket: Ticket) -> Response:
            translator = run.translator()
            tokens = wanted(fields, translator, self.limits)
            fields.finish()
            found = recorded(translator, source, tokens, self.limits)
            return self.summary(self.store.add(source.text[:80], found), ticket)

        return await self.workers.run(work)

    async def ask(self, request: Request) -> Response:
        """What a run makes of an image, a sound or a passage, which is the body; or of an example."""
        fields = Fields.of_query(request)
        run = self.runs[request.path_params["run"]]
        example = fields.choice("example", ("yes", "no"), "no") == "yes"
        question = fields.text("question", self.limits.characters) if "question" in fields.values else ""
        fields.finish()
        with self.uploading():
            content = await read(request, UNIVERSAL, self.limits.file, 6 * self.limits.patience)
            item = None if example else Item(content, question)
            return await self.workers.run(lambda ticket: self.answered(run.ask(item), ticket))

    def answered(self, prediction: Prediction, ticket: Ticket) -> Response:
        """A prediction, and a recording of where it looked, if it did."""
        chapter = prediction.chapter()
        said = {"text": prediction.text, **{name: value for name, value in prediction.values.items() if name in SAID}}
        if chapter is None:
            return answer_json({**said, "looked": None, "beside": None})
        name = self.store.add(chapter.name[:80], chapter.recording)
        looked = recordings.summary(name, self.store.get(name), self.limits.cells, ticket)
        beside = None if chapter.beside is None else chapter.beside.written()
        return answer_json({**said, "looked": looked, "beside": beside})

    async def metrics(self, request: Request) -> Response:
        """The curves of a run, followed."""
        fields = Fields.of_query(request)
        run = self.runs[request.path_params["run"]]
        start = fields.whole("start", 0, LARGEST, 0)
        fields.finish()
        if request.method == "HEAD":
            return head_of_stream()
        return streamed(self.followers.follow(run.folder, start))

    async def upload(self, request: Request) -> Response:
        """A recording that somebody opens in the page. It is read from a file of its own, which is gone afterwards."""
        with self.uploading():
            content = await read(request, UNIVERSAL, self.limits.upload, 6 * self.limits.patience)
            return await self.workers.run(lambda ticket: self.opened(content, ticket))

    def opened(self, content: bytes, ticket: Ticket) -> Response:
        """The recording of an upload, kept."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "recording.safetensors"
            try:
                path.write_bytes(content)
            except OSError as error:
                got, fix = f"no room for the upload ('{error.strerror}')", "free some space where it runs"
                raise refuse(507, "server", got, f"{len(content):,} bytes of it", fix) from None
            recording = read_recording(path, self.limits.upload, name=GIVEN, between=ticket.check)
        return self.summary(self.store.add("", recording), ticket)

    def summary(self, name: str, ticket: Ticket) -> Response:
        """What is in a recording that is kept. For a worker: there may be very many sites in it."""
        return answer_json(recordings.summary(name, self.store.get(name), self.limits.cells, ticket))

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """A place for one that arrives. Each takes its whole size in memory, so that there are few."""
        if self.uploads >= self.limits.workers:
            text = sentence(
                "server", f"more than {self.limits.workers} uploads at once", "fewer", "try again in a moment"
            )
            raise RefusedError(503, text, wait=1)
        self.uploads += 1
        try:
            yield
        finally:
            self.uploads -= 1

    async def file(self, request: Request) -> Response:
        """A recording of those that were named when the server was started."""
        title = request.path_params["title"]

        def work(ticket: Ticket) -> Response:
            return self.summary(self.files.open(title, self.store, ticket.check), ticket)

        return await self.workers.run(work)

    async def recording(self, request: Request) -> Response:
        name = request.path_params["name"]
        return await self.workers.run(lambda ticket: self.summary(name, ticket))

    async def labels(self, request: Request) -> Response:
        return await self.asked(request, recordings.labels, settled)

    async def weight(self, request: Request) -> Response:
        return await self.asked(request, recordings.exact, answer_json)

    async def table(self, request: Request) -> Response:
        cells = self.limits.cells
        return await self.asked(request, lambda fields, kept, ticket: recordings.table(fields, kept, cells), numbers)

    async def tile(self, request: Request) -> Response:
        return await self.asked(request, recordings.tile, numbers)

    async def rows(self, request: Request) -> Response:
        return await self.asked(request, recordings.largest_of_rows, numbers)

    async def asked(self, request: Request, part: Part, respond: Callable[[Any], Response]) -> Response:
        """Something of a recording, computed and written beside the event loop."""
        kept, fields = self.store.get(request.path_params["name"]), Fields.of_query(request)

        def work(ticket: Ticket) -> Response:
            found = part(fields, kept.recording, ticket)
            fields.finish()
            return respond(found)

        return await self.workers.run(work)


class Static(StaticFiles):
    """The files of the page, asked for again each time."""

    def file_response(self, *arguments: Any, **more: Any) -> Response:
        response = super().file_response(*arguments, **more)
        response.headers.update(FRESH)
        return response


def settled(values: Any) -> Response:
    """Text that never changes."""
    return answer_json(values, headers=SETTLED)


def numbers(values: Any) -> Response:
    """Numbers in bytes."""
    return Response(recordings.as_bytes(values), media_type=UNIVERSAL, headers=SETTLED)
