"""The routes of the server."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from regard.datasets.bounds import get_bound
from regard.inspect.display import parts
from regard.inspect.display.fields import Fields
from regard.inspect.display.parts import PartReader
from regard.inspect.recording.file import read_recording
from regard.tasks.prediction import Prediction
from regard.web.bodies import UNIVERSAL, read_body, read_fields, read_query
from regard.web.events import Stream, answer_head
from regard.web.inputs import INPUT_NAME, RunInput
from regard.web.limits import Limits
from regard.web.messages import localize_for
from regard.web.metrics import LARGEST, Followers
from regard.web.openapi import build_document
from regard.web.responses import answer_json, busy_error
from regard.web.runs import Runs
from regard.web.store import Files, Store, StoredRecording, Uploads
from regard.web.translation import SourceText, TranslationRequest, read_target, record_attention, stream_translation
from regard.web.workers import Ticket, Workers

STATIC = Path(__file__).parent / "static"
FRESH = {"Cache-Control": "no-cache"}  # asked for again each time, so that a new version is used at once
CACHED = {"Cache-Control": "private, max-age=3600"}  # what has this name never changes
SHOWN_VALUES = ("text", "question", "shares", "notes", "begin", "facts", "probability")  # of a prediction, for the page


class Routes:
    """The routes, and what their answers are made from."""

    def __init__(self, runs: Runs, files: Files, limits: Limits) -> None:
        self.runs, self.files, self.limits = runs, files, limits
        self.store, self.workers, self.followers = Store(limits.kept), Workers(limits), Followers(limits)
        self.life = secrets.token_urlsafe(6)
        self.uploads, self.arriving = Uploads(get_bound("store", "sent bytes")), 0  # uploads that are being parsed

    def list_routes(self) -> list[BaseRoute]:
        """Return all routes."""
        readers: dict[str, tuple[PartReader, Callable[[Any], Response]]] = {
            "labels": (parts.get_labels, answer_cached),
            "bundle": (partial(parts.get_bundle, cells=self.limits.cells), answer_bytes),
            "table": (partial(parts.get_table, cells=self.limits.cells), answer_numbers),
            "tile": (parts.get_tile, answer_numbers),
            "rows": (parts.find_row_maxima, answer_numbers),
            "weight": (parts.get_weight, answer_json),
            "explanation": (parts.explain_weight, answer_json),
        }
        return [
            Route("/", self.get_page),
            Route("/openapi.json", self.get_document),
            Route("/api/state", self.get_state),
            Route("/api/alive", self.get_life),
            Route("/api/translate", self.translate, methods=["POST"]),
            Route("/api/attention", self.get_attention, methods=["POST"]),
            Route("/api/runs/{run}/ask", self.ask, methods=["POST"]),
            Route("/api/runs/{run}/metrics", self.follow_metrics),
            Route("/api/recordings", self.upload, methods=["POST"]),
            Route("/api/files/{title}", self.open_file, methods=["POST"]),
            Route("/api/recordings/{name}", self.get_recording),
            *(
                Route(f"/api/recordings/{{name}}/{name}", partial(self.answer_part, part=part, respond=respond))
                for name, (part, respond) in readers.items()
            ),
            Mount("/static", PageFiles(directory=STATIC)),
        ]

    def close(self) -> None:
        """End all work and all streams: the server ends."""
        self.followers.ended = True
        self.workers.close()
        self.uploads.close()

    async def get_page(self, request: Request) -> Response:
        """Answer with the page."""
        return FileResponse(STATIC / "index.html", headers=FRESH)

    async def get_document(self, request: Request) -> Response:
        """Answer with the OpenAPI document of this server."""
        return answer_json(build_document(self.limits), headers=FRESH)

    async def get_state(self, request: Request) -> Response:
        """Answer with the runs, recordings and limits."""
        names = ("characters", "tokens", "beam", "upload", "file", "passage", "cells")
        limits = {name: getattr(self.limits, name) for name in names}

        def work(ticket: Ticket) -> Response:
            facts = [run.describe(ticket) for run in self.runs.values()]
            for run in facts:
                run |= {"error": localize_for(request, run["error"])} if "error" in run else {}
            return answer_json({"runs": facts, "files": list(self.files.paths), "limits": limits})

        return await self.workers.run(work)

    async def get_life(self, request: Request) -> Response:
        """Answer at once, with a name that another start of the server will not have."""
        return answer_json({"life": self.life})

    async def parse_fields(self, request: Request) -> Fields:
        """Return the fields of a body."""
        return await read_fields(request, self.limits.body, self.limits.patience)

    async def translate(self, request: Request) -> Response:
        """Answer with a translation, event by event."""
        fields = await self.parse_fields(request)
        run = self.runs[fields.take_text("run", get_bound("request", "name"))]
        question = TranslationRequest.from_fields(fields, self.limits)
        fields.finish()
        return Stream(
            request,
            self.workers.stream(
                lambda ticket: stream_translation(run.load_translator(), question, self.limits, ticket)
            ),
        )

    async def get_attention(self, request: Request) -> Response:
        """Answer with all attention behind one translation."""
        fields = await self.parse_fields(request)
        run = self.runs[fields.take_text("run", get_bound("request", "name"))]
        source = SourceText.from_fields(fields, self.limits)

        def work(ticket: Ticket) -> Response:
            translator = run.load_translator()
            tokens = read_target(fields, translator, self.limits)
            fields.finish()
            recording = record_attention(translator, source, tokens, self.limits)
            return self.answer_summary(self.store.add(source.text[:80], recording), ticket)

        return await self.workers.run(work)

    async def ask(self, request: Request) -> Response:
        """Answer with the prediction for an image, a sound or a passage, which is the body; or for an example."""
        fields = read_query(request)
        run = self.runs[request.path_params["run"]]
        example = fields.take_choice("example", ("yes", "no"), "no") == "yes"
        question = fields.take_text("question", self.limits.characters) if "question" in fields.values else ""
        fields.finish()
        with self.reserve_upload():
            content = await read_body(request, UNIVERSAL, self.limits.file, 6 * self.limits.patience)
            item = None if example else RunInput(content, question)
            return await self.workers.run(lambda ticket: self.answer_prediction(*run.ask(item), ticket))

    def answer_prediction(self, prediction: Prediction, given: Mapping[str, str], ticket: Ticket) -> Response:
        """Answer with a prediction, what an example was asked, and a summary of the recording if it has attention."""
        chapter = prediction.build_chapter()
        shown = {name: value for name, value in prediction.values.items() if name in SHOWN_VALUES}
        summary = beside = None
        if chapter is not None:
            summary = self.summarize(self.store.add(chapter.name[:80], chapter.recording), ticket)
            beside = None if chapter.medium is None else chapter.medium.to_json()
        return answer_json({"text": prediction.text, **shown, "given": given, "attention": summary, "beside": beside})

    async def follow_metrics(self, request: Request) -> Response:
        """Answer with the metrics of a run, followed while it trains."""
        fields = read_query(request)
        run = self.runs[request.path_params["run"]]
        start = fields.take_integer("start", 0, LARGEST, 0)
        fields.finish()
        if request.method == "HEAD":
            return answer_head()
        return Stream(request, self.followers.follow(run.folder, start, run.read_plan()))

    async def upload(self, request: Request) -> Response:
        """Answer with the summary of a recording that is opened in the page."""
        with self.reserve_upload():
            content = await read_body(request, UNIVERSAL, self.limits.upload, 6 * self.limits.patience)
            return await self.workers.run(lambda ticket: self.open_upload(content, ticket))

    def open_upload(self, content: bytes, ticket: Ticket) -> Response:
        """Keep the recording of an upload, and its file."""
        path = self.uploads.write(content)
        try:
            recording = read_recording(path, self.limits.upload, name=INPUT_NAME, check_interrupt=ticket.check)
            name = self.store.add("", recording)
            self.uploads.keep(path, name)
        finally:
            path.unlink(missing_ok=True)
        return self.answer_summary(name, ticket)

    def find_recording(self, name: str, ticket: Ticket) -> StoredRecording:
        """Return a recording; one that was sent and dropped is read again."""
        path = None if name in self.store.recordings else self.uploads.find(name)
        if path is not None:
            recording = read_recording(path, self.limits.upload, name=INPUT_NAME, check_interrupt=ticket.check)
            self.store.add("", recording, name)
        return self.store.get(name)

    def answer_summary(self, name: str, ticket: Ticket) -> Response:
        """Answer with the summary of a recording."""
        return answer_json(self.summarize(name, ticket))

    def summarize(self, name: str, ticket: Ticket) -> dict[str, object]:
        """Return the sites of a recording. For a worker: there may be very many of them."""
        kept = self.find_recording(name, ticket)
        sites = parts.list_sites(kept.recording, self.limits.cells, ticket.check)
        return {"recording": name, "title": kept.title, "sites": sites, "notes": kept.recording.notes}

    @contextmanager
    def reserve_upload(self) -> Iterator[None]:
        """Reserve a place for an upload. There are few, because each takes its whole size in memory."""
        if self.arriving >= self.limits.workers:
            got = f"more than {self.limits.workers} uploads at once"
            raise busy_error("server", got, "fewer", "try again in a moment")
        self.arriving += 1
        try:
            yield
        finally:
            self.arriving -= 1

    async def open_file(self, request: Request) -> Response:
        """Answer with the summary of a recording that was named when the server was started."""
        title = request.path_params["title"]

        def work(ticket: Ticket) -> Response:
            return self.answer_summary(self.files.open(title, self.store, ticket.check), ticket)

        return await self.workers.run(work)

    async def get_recording(self, request: Request) -> Response:
        """Answer with the summary of a recording."""
        name = request.path_params["name"]
        return await self.workers.run(lambda ticket: self.answer_summary(name, ticket))

    async def answer_part(
        self, request: Request, part: parts.PartReader, respond: Callable[[Any], Response]
    ) -> Response:
        """Answer with a part of a recording, computed and encoded beside the event loop."""
        name, fields = request.path_params["name"], read_query(request)

        def work(ticket: Ticket) -> Response:
            values = part(fields, self.find_recording(name, ticket).recording, ticket.check)
            fields.finish()
            return respond(values)

        return await self.workers.run(work)


class PageFiles(StaticFiles):
    """The files of the page, which browsers ask for again each time."""

    def file_response(self, *arguments: Any, **more: Any) -> Response:
        response = super().file_response(*arguments, **more)
        response.headers.update(FRESH)
        return response


def answer_cached(values: Any) -> Response:
    """Answer with text that never changes."""
    return answer_json(values, headers=CACHED)


def answer_numbers(values: Any) -> Response:
    """Answer with numbers as bytes."""
    return answer_bytes(parts.to_bytes(values))


def answer_bytes(content: bytes) -> Response:
    """Answer with bytes that never change."""
    return Response(content, media_type=UNIVERSAL, headers=CACHED)
