"""The API of the server as an OpenAPI document, which the server has at /openapi.json."""

from collections.abc import Mapping
from typing import Any

from regard import __version__
from regard.web.limits import Limits

JSON, BYTES, EVENTS = "application/json", "application/octet-stream", "text/event-stream"
TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer", "minimum": 0}
NUMBER: dict[str, Any] = {"type": "number"}
SUMMARY = {"$ref": "#/components/schemas/Recording"}
ERROR = {"$ref": "#/components/schemas/Error"}
EVENT_HELP = "Events, each with a name and JSON: "


def build_document(limits: Limits) -> dict[str, Any]:
    """Return the document: every path with its parameters, its body and its answers."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "regard",
            "version": __version__,
            "description": "Translate, ask, read attention. Errors are {'error': 'name: got …, expected …; fix: …'}, "
            "in Chinese if Accept-Language prefers it.",
        },
        "paths": list_paths(limits),
        "components": {"schemas": list_schemas()},
    }


def list_paths(limits: Limits) -> dict[str, Any]:
    """Return every path of the API."""
    return {
        "/openapi.json": {"get": describe("This document.", answer({"type": "object"}))},
        "/api/alive": {
            "get": describe(
                "A name that another start of the server will not have.",
                answer({"type": "object", "required": ["life"]}),
            )
        },
        "/api/state": {
            "get": describe("The runs and recordings that are served, and the limits.", answer(refer("State")))
        },
        **list_translation_paths(limits),
        **list_run_paths(take("run")),
        **list_recording_paths(take("name")),
    }


def list_translation_paths(limits: Limits) -> dict[str, Any]:
    """Return the paths of translators."""
    masked = {"type": "array", "items": WHOLE, "maxItems": limits.tokens}
    source = {"run": TEXT, "text": {**TEXT, "maxLength": limits.characters}, "masked": masked}
    source["masking"] = {"enum": ["attention", "input"]}
    search = {"beam": {"type": "integer", "minimum": 1, "maximum": limits.beam}, "seed": WHOLE}
    search |= {"length": NUMBER, "temperature": NUMBER}
    return {
        "/api/translate": {
            "post": describe(
                "Translate a text, token by token.",
                answer(
                    TEXT, EVENTS, EVENT_HELP + "the source, steps of the search with their branches, what was found."
                ),
                body=take_object(source | search, ("run", "text")),
            )
        },
        "/api/attention": {
            "post": describe(
                "All attention behind one translation.", answer(SUMMARY), body=take_object(source, ("run", "text"))
            )
        },
    }


def list_run_paths(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paths of any run."""
    return {
        "/api/runs/{run}/ask": {
            "post": describe(
                "Ask a run about an image, a sound or a passage, which is the body; or about an example.",
                answer(refer("Prediction")),
                parameters=[run, query("question", TEXT), query("example", {"enum": ["yes", "no"]})],
                body={"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}},
            )
        },
        "/api/runs/{run}/metrics": {
            "get": describe(
                "The metrics of a run, followed while it trains.",
                answer(TEXT, EVENTS, EVENT_HELP + "points from a byte of metrics.jsonl on, and where they end."),
                parameters=[run, query("start", WHOLE)],
            )
        },
    }


def list_recording_paths(name: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paths of recordings."""
    return {
        "/api/recordings": {
            "post": describe(
                "Open a recording, which is the body: the file that Recording.save writes.",
                answer(SUMMARY),
                body={"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}},
            )
        },
        "/api/files/{title}": {
            "post": describe(
                "Open a recording that was named at the start.", answer(SUMMARY), parameters=[take("title")]
            )
        },
        "/api/recordings/{name}": {"get": describe("The sites of a recording.", answer(SUMMARY), parameters=[name])},
        **{f"/api/recordings/{{name}}/{part}": {"get": one} for part, one in list_parts(name).items()},
    }


def list_parts(name: Mapping[str, Any]) -> dict[str, Any]:
    """Return what can be read of a recording, by the last word of its path."""
    numbers = answer({"type": "string", "format": "binary"}, BYTES, "Numbers in float32, little-endian, row by row.")
    site = [dict(name), query("site", WHOLE)]
    head = [*site, query("head", TEXT)]
    tile = [*head, *(query(word, WHOLE) for word in ("up", "across", "row", "column"))]
    cell = [*head, query("row", WHOLE), query("column", WHOLE)]
    return {
        "labels": describe("The tokens along both sides.", answer({"type": "object"}), parameters=site),
        "table": describe("All weights of a small attention.", numbers, parameters=site),
        "bundle": describe(
            "Labels and weights of all small sites: the length of a JSON text in four bytes, the text, the weights.",
            numbers,
            parameters=[dict(name)],
        ),
        "tile": describe("A part of a long attention, made smaller by powers of 2.", numbers, parameters=tile),
        "rows": describe("The largest weight of each row.", numbers, parameters=head),
        "weight": describe("One weight, exactly.", answer({"type": "object"}), parameters=cell),
        "explanation": describe(
            "What made one weight: its rank and share, and the terms of its score if the vectors were kept.",
            answer({"type": "object", "required": ["weight", "facts"]}),
            parameters=cell,
        ),
    }


def list_schemas() -> dict[str, Any]:
    """Return the objects that several answers have."""
    run = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": TEXT, "task": TEXT, "ready": {"type": "boolean"}},
    }
    sizes = ("heads", "rows", "columns")
    properties = {"name": TEXT, "kind": TEXT, "whole": {"type": "boolean"}, **dict.fromkeys(sizes, WHOLE)}
    site = {"type": "object", "required": ["name", *sizes], "properties": properties}
    return {
        "Error": {"type": "object", "required": ["error"], "properties": {"error": TEXT}},
        "State": {
            "type": "object",
            "required": ["runs", "files", "limits"],
            "properties": {
                "runs": {"type": "array", "items": run},
                "files": {"type": "array", "items": TEXT},
                "limits": {"type": "object", "additionalProperties": NUMBER},
            },
        },
        "Recording": {
            "type": "object",
            "required": ["recording", "title", "sites", "notes"],
            "properties": {
                "recording": TEXT,
                "title": TEXT,
                "sites": {"type": "array", "items": site},
                "notes": {"type": "array", "items": TEXT},
            },
        },
        "Prediction": {"type": "object", "required": ["text"], "properties": {"text": TEXT}},
    }


def refer(schema: str) -> dict[str, Any]:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{schema}"}


def answer(schema: Mapping[str, Any], kind: str = JSON, text: str = "The answer.") -> dict[str, Any]:
    """Return the answers of a path: the right one, and errors."""
    wrong_one = {"description": "What was wrong.", "content": {JSON: {"schema": ERROR}}}
    return {"200": {"description": text, "content": {kind: {"schema": dict(schema)}}}, "default": wrong_one}


def describe(summary: str, answers: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return one operation; `more` are its parameters and its body."""
    named = {"requestBody": more.pop("body")} if "body" in more else {}
    return {"summary": summary, "responses": dict(answers), **more, **named}


def take(name: str) -> dict[str, Any]:
    """Return a parameter of the path."""
    return {"name": name, "in": "path", "required": True, "schema": TEXT}


def query(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter behind the question mark."""
    return {"name": name, "in": "query", "required": False, "schema": dict(schema)}


def take_object(properties: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    """Return a body of JSON."""
    schema = {"type": "object", "properties": dict(properties), "required": list(required)}
    return {"required": True, "content": {JSON: {"schema": schema}}}
