"""The OpenAPI document names every path of the server and what it answers."""

from typing import Any

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient
from tiny_runs import LIMITS

from regard.web.openapi import build_document
from regard.web.routes import Routes
from regard.web.runs import Runs
from regard.web.store import Files

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


@pytest.fixture
def document(client: TestClient) -> dict[str, Any]:
    answer = client.get("/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    assert found == build_document(LIMITS)
    return found


def find_faults(value: Any, schema: dict[str, Any], document: dict[str, Any], place: str = "answer") -> list[str]:
    """Return where a value is not as a schema says: types, required and listed properties, items, references."""
    if "$ref" in schema:
        return find_faults(value, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document, place)
    if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
        return [f"{place}: {value!r} is no {schema['type']}"]
    faults = [f"{place}.{name}: missing" for name in schema.get("required", ()) if name not in value]
    for name, own in schema.get("properties", {}).items():
        if name in value:
            faults += find_faults(value[name], own, document, f"{place}.{name}")
    for number, item in enumerate(value if "items" in schema else ()):
        faults += find_faults(item, schema["items"], document, f"{place}[{number}]")
    return faults


def test_it_has_every_route_and_no_other(document: dict[str, Any]) -> None:
    routes = Routes(Runs({}, LIMITS), Files({}, LIMITS.kept), LIMITS).list_routes()
    served = {
        (route.path, method.lower())
        for route in routes
        if isinstance(route, Route) and route.path != "/"
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert served == {(path, method) for path, own in document["paths"].items() for method in own}
    for path, own in document["paths"].items():
        (operation,) = own.values()
        inside = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert {part[1:-1] for part in path.split("/") if part.startswith("{")} == inside


def test_answers_are_as_it_says(client: TestClient, document: dict[str, Any]) -> None:
    summary = client.post("/api/files/attention.safetensors")
    name = summary.json()["recording"]
    asked = {
        "/api/state": client.get("/api/state"),
        "/api/files/{title}": summary,
        "/api/alive": client.get("/api/alive"),
        "/api/recordings/{name}/bundle": client.get(f"/api/recordings/{name}/bundle"),
        "/api/recordings/{name}": client.get(f"/api/recordings/{name}"),
        "/api/attention": client.post("/api/attention", json={"run": "bahdanau", "text": "one", "tokens": []}),
        "/api/recordings/{name}/labels": client.get(f"/api/recordings/{name}/labels?site=0"),
        "/api/recordings/{name}/weight": client.get(f"/api/recordings/{name}/weight?site=0&row=0&column=1"),
        "/api/recordings/{name}/explanation": client.get(f"/api/recordings/{name}/explanation?site=0&row=0&column=1"),
        "/api/recordings/{name}/table": client.get(f"/api/recordings/{name}/table?site=0"),
        "/api/recordings/{name}/rows": client.get(f"/api/recordings/{name}/rows?site=0"),
        "/api/translate": client.post("/api/translate", json={"run": "plain", "text": "one", "beam": 1}),
    }
    for path, answer in asked.items():
        (operation,) = document["paths"][path].values()
        found = operation["responses"]["200" if answer.status_code == 200 else "default"]["content"]
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in found, (path, answer.text)
        if kind == "application/json":
            assert find_faults(answer.json(), found[kind]["schema"], document) == [], path
    wrong = client.get("/api/recordings/none")
    assert wrong.status_code == 404
    assert find_faults(wrong.json(), document["components"]["schemas"]["Error"], document) == []
