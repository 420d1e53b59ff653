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

from regard.datasets.bounds import get_bound
from regard.errors import format_message
from regard.inspect.recording import Recording
from regard.inspect.recording.file import read_recording as read_recording
from regard.tasks.prediction import Prediction
from regard.web import recordings
from regard.web.attention import read_target, record_attention
from regard.web.bodies import UNIVERSAL, Fields, read_body, read_fields
from regard.web.events import answer_head, stream_events
from regard.web.inputs import INPUT_NAME, RunInput
from regard.web.limits import Limits
from regard.web.metrics import LARGEST, Followers
from regard.web.responses import RefusedError, answer_json, refuse
from regard.web.runs import Runs
from regard.web.store import Files, Store
from regard.web.translation import SourceText, TranslationRequest, stream_translation
from regard.web.workers import Ticket, Workers

STATIC = Path(__file__).parent / "static"
FRESH = {"Cache-Control": "no-cache"}  # asked again each time, by its tag: a new version is seen at once
CACHED = {"Cache-Control": "private, max-age=3600"}  # what has this name never changes
SHOWN_VALUES = ("text", "question", "shares", "notes")  # of what a prediction says, for the page
PartReader = Callable[[Fields, Recording, Ticket], Any]  # of a recording, as it is asked for


class Routes:
    """The answers, and what they are made from."""

    def __init__(self, runs: Runs, files: Files, limits: Limits) -> None:
        self.runs, self.files, self.limits = runs, files, limits
        self.store, self.workers, self.followers = Store(limits.kept), Workers(limits), Followers(limits)
        self.uploads = 0  # that are arriving or being read

    def list_routes(self) -> list[BaseRoute]:
        tables: dict[str, Callable[[Request], Any]] = {
            "labels": self.get_labels,
            "table": self.get_table,
            "tile": self.get_tile,
            "rows": self.get_rows,
            "weight": self.get_weight,
        }
        return [
            Route("/", self.get_page),
            Route("/api/state", self.get_state),
            Route("/api/translate", self.translate, methods=["POST"]),
            Route("/api/attention", self.get_attention, methods=["POST"]),
            Route("/api/runs/{run}/ask", self.ask, methods=["POST"]),
            Route("/api/runs/{run}/metrics", self.follow_metrics),
            Route("/api/recordings", self.upload, methods=["POST"]),
            Route("/api/files/{title}", self.open_file, methods=["POST"]),
            Route("/api/recordings/{name}", self.get_recording),
            *(Route(f"/api/recordings/{{name}}/{part}", method) for part, method in tables.items()),
            Mount("/static", PageFiles(directory=STATIC)),
        ]

    def close(self) -> None:
        """End what is under way: the server ends."""
        self.followers.ended = True
        self.workers.close()

    async def get_page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers=FRESH)

    async def get_state(self, request: Request) -> Response:
        """Which runs and recordings there are."""
        names = ("characters", "tokens", "beam", "upload", "file", "passage", "cells")
        limits = {name: getattr(self.limits, name) for name in names}

        def work(ticket: Ticket) -> Response:
            facts = [run.describe(ticket) for run in self.runs.values()]
            return answer_json({"runs": facts, "files": list(self.files.paths), "limits": limits})

        return await self.workers.run(work)

    async def parse_fields(self, request: Request) -> Fields:
        return await read_fields(request, self.limits.body, self.limits.patience)

    async def translate(self, request: Request) -> Response:
        """A translation, event by event."""
        fields = await self.parse_fields(request)
        run = self.runs[fields.take_text("run", get_bound("request", "name"))]
        question = TranslationRequest.from_fields(fields, self.limits)
        fields.finish()
        events = self.workers.stream(
            lambda ticket: stream_translation(run.load_translator(), question, self.limits, ticket)
        )
        return stream_events(events)

    async def get_attention(self, request: Request) -> Response:
        """All attention behind one translation."""
        fields = await self.parse_fields(request)
        run = self.runs[fields.take_text("run", get_bound("request", "name"))]
        source = SourceText.from_fields(fields, self.limits)

        def work(ticket: Ticket) -> Response:
            translator = run.load_translator()
            tokens = read_target(fields, translator, self.limits)
            fields.finish()
            found = record_attention(translator, source, tokens, self.limits)
            return self.answer_summary(self.store.add(source.text[:80], found), ticket)

        return await self.workers.run(work)

    async def ask(self, request: Request) -> Response:
        """What a run makes of an image, a sound or a passage, which is the body; or of an example."""
        fields = Fields.from_query(request)
        run = self.runs[request.path_params["run"]]
        example = fields.take_choice("example", ("yes", "no"), "no") == "yes"
        question = fields.take_text("question", self.limits.characters) if "question" in fields.values else ""
        fields.finish()
        with self.reserve_upload():
            content = await read_body(request, UNIVERSAL, self.limits.file, 6 * self.limits.patience)
            item = None if example else RunInput(content, question)
            return await self.workers.run(lambda ticket: self.answer_prediction(run.ask(item), ticket))

    def answer_prediction(self, prediction: Prediction, ticket: Ticket) -> Response:
        """A prediction, and a recording of where it looked, if it did."""
        chapter = prediction.build_chapter()
        said = {
            "text": prediction.text,
            **{name: value for name, value in prediction.values.items() if name in SHOWN_VALUES},
        }
        if chapter is None:
            return answer_json({**said, "looked": None, "beside": None})
        name = self.store.add(chapter.name[:80], chapter.recording)
        looked = recordings.summarize_recording(name, self.store.get(name), self.limits.cells, ticket)
        beside = None if chapter.medium is None else chapter.medium.to_json()
        return answer_json({**said, "looked": looked, "beside": beside})

    async def follow_metrics(self, request: Request) -> Response:
        """The curves of a run, followed."""
        fields = Fields.from_query(request)
        run = self.runs[request.path_params["run"]]
        start = fields.take_integer("start", 0, LARGEST, 0)
        fields.finish()
        if request.method == "HEAD":
            return answer_head()
        return stream_events(self.followers.follow(run.folder, start))

    async def upload(self, request: Request) -> Response:
        """A recording that somebody opens in the page. It is read from a file of its own, which is gone afterwards."""
        with self.reserve_upload():
            content = await read_body(request, UNIVERSAL, self.limits.upload, 6 * self.limits.patience)
            return await self.workers.run(lambda ticket: self.open_upload(content, ticket))

    def open_upload(self, content: bytes, ticket: Ticket) -> Response:
        """The recording of an upload, kept."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "recording.safetensors"
            try:
                path.write_bytes(content)
            except OSError as error:
                got, fix = f"no room for the upload ('{error.strerror}')", "free some space where it runs"
                raise refuse(507, "server", got, f"{len(content):,} bytes of it", fix) from None
            recording = read_recording(path, self.limits.upload, name=INPUT_NAME, between=ticket.check)
        return self.answer_summary(self.store.add("", recording), ticket)

    def answer_summary(self, name: str, ticket: Ticket) -> Response:
        """What is in a recording that is kept. For a worker: there may be very many sites in it."""
        return answer_json(recordings.summarize_recording(name, self.store.get(name), self.limits.cells, ticket))

    @contextmanager
    def reserve_upload(self) -> Iterator[None]:
        """A place for one that arrives. Each takes its whole size in memory, so that there are few."""
        if self.uploads >= self.limits.workers:
            text = format_message(
                "server", f"more than {self.limits.workers} uploads at once", "fewer", "try again in a moment"
            )
            raise RefusedError(503, text, wait=1)
        self.uploads += 1
        try:
            yield
        finally:
            self.uploads -= 1

    async def open_file(self, request: Request) -> Response:
        """A recording of those that were named when the server was started."""
        title = request.path_params["title"]

        def work(ticket: Ticket) -> Response:
            return self.answer_summary(self.files.open(title, self.store, ticket.check), ticket)

        return await self.workers.run(work)

    async def get_recording(self, request: Request) -> Response:
        name = request.path_params["name"]
        return await self.workers.run(lambda ticket: self.answer_summary(name, ticket))

    async def get_labels(self, request: Request) -> Response:
        return await self.answer_part(request, recordings.get_labels, answer_cached)

    async def get_weight(self, request: Request) -> Response:
        return await self.answer_part(request, recordings.get_weight, answer_json)

    async def get_table(self, request: Request) -> Response:
        cells = self.limits.cells
        return await self.answer_part(
            request, lambda fields, kept, ticket: recordings.get_table(fields, kept, cells), answer_numbers
        )

    async def get_tile(self, request: Request) -> Response:
        return await self.answer_part(request, recordings.get_tile, answer_numbers)

    async def get_rows(self, request: Request) -> Response:
        return await self.answer_part(request, recordings.find_row_maxima, answer_numbers)

    async def answer_part(self, request: Request, part: PartReader, respond: Callable[[Any], Response]) -> Response:
        """Something of a recording, computed and written beside the event loop."""
        kept, fields = self.store.get(request.path_params["name"]), Fields.from_query(request)

        def work(ticket: Ticket) -> Response:
            found = part(fields, kept.recording, ticket)
            fields.finish()
            return respond(found)

        return await self.workers.run(work)


class PageFiles(StaticFiles):
    """The files of the page, asked for again each time."""

    def file_response(self, *arguments: Any, **more: Any) -> Response:
        response = super().file_response(*arguments, **more)
        response.headers.update(FRESH)
        return response


def answer_cached(values: Any) -> Response:
    """Text that never changes."""
    return answer_json(values, headers=CACHED)


def answer_numbers(values: Any) -> Response:
    """Numbers in bytes."""
    return Response(recordings.to_bytes(values), media_type=UNIVERSAL, headers=CACHED)
