"""A stranger's page, a stranger on the network, and hostile requests and files."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from starlette.testclient import TestClient
from tiny_runs import LIMITS, make_run

from regard.inspect.recording import Recording
from regard.web.app import build_app, format_url, open_socket
from regard.web.security import HEADERS, Access

ASK = {"run": "transformer", "text": "one"}
BINARY = {"Content-Type": "application/octet-stream"}
PATHS = ["/", "/static/page/main.js", "/api/state", "/api/nothing", "/nothing"]


def read_error(answer: Any) -> str:
    """Return the message of an answer, after checking its form."""
    text: str = answer.json()["error"]
    assert list(answer.json()) == ["error"]
    assert all(part in text for part in (": got ", ", expected ", "; fix: "))
    return text


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "10.0.0.1", "a b"],
)
def test_a_rebound_name_is_refused(client: TestClient, path: str, host: str) -> None:
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 403
    assert read_error(answer).startswith("Host: got ")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"])
def test_own_names_are_served(client: TestClient, host: str) -> None:
    assert client.get("/api/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost", "http://localhost:9999", "http://localhost.evil", ""]
)
def test_a_foreign_page_can_neither_read_nor_post(client: TestClient, origin: str) -> None:
    headers = {"Origin": origin}
    answers = [client.get("/api/state", headers=headers), client.post("/api/translate", json=ASK, headers=headers)]
    answers.append(client.options("/api/translate", headers=headers | {"Access-Control-Request-Method": "POST"}))
    for answer in answers:
        assert answer.status_code == 403
        assert read_error(answer).startswith("Origin: got ")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_the_browser_says_who_asks(client: TestClient, site: str) -> None:
    fetching = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    for path in PATHS:
        assert client.get(path, headers=fetching).status_code == 403
    visiting = fetching | {"Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=visiting).status_code == 200
    assert client.get("/api/state", headers=visiting).status_code == 403
    assert client.get("/api/state", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert client.get("/", headers={"Origin": "http://localhost"}).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_can_send_is_refused(client: TestClient, kind: str) -> None:
    """These content types need no leave to be sent across sites; JSON does."""
    answer = client.post("/api/translate", content=json.dumps(ASK), headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert read_error(answer).startswith("Content-Type: got ")


def test_others_need_a_token(place: Path) -> None:
    access = Access.from_host("0.0.0.0", token="right")
    with TestClient(build_app([place / "plain"], access), base_url="http://192.0.2.7:8000") as client:
        assert client.get("/").status_code == 200  # the page is no secret
        for token in ("", "Bearer", "Bearer wrong", "Bearer rightt", "Bearer righ", "Bearer é"):
            answer = client.get("/api/state", headers={"Authorization": token.encode()} if token else {})
            assert answer.status_code == 401
            assert read_error(answer).startswith("token: got ")
        assert client.get("/api/state", headers={"Authorization": "Bearer right"}).status_code == 200
        rebound = {"Host": "evil.example", "Authorization": "Bearer right"}
        assert client.get("/api/state", headers=rebound).status_code == 403


def test_a_token_is_made_up_wherever_others_can_reach() -> None:
    assert Access.from_host("127.0.0.1").token is None
    assert Access.from_host("localhost").token is None
    made = {Access.from_host(host).token for host in ("0.0.0.0", "192.0.2.7", "::", "example.org")}
    assert len(made) == 4
    assert all(token is not None and len(token) >= 30 for token in made)
    assert format_url("192.0.2.7", 80, "secret") == "http://192.0.2.7:80/#token=secret"


def test_a_port_that_is_taken_is_a_sentence() -> None:
    taken = open_socket("127.0.0.1", 0)
    taken.listen()
    with taken, pytest.raises(ValueError, match=r"port: got \d+ of 127\.0\.0\.1 .*; fix: use --port 0 for any"):
        open_socket("127.0.0.1", taken.getsockname()[1])


TRAVERSALS = [
    "../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "....//secret.txt", "/etc/passwd", "%2fetc%2fpasswd",
    "..\\secret.txt", "transformer/../../secret.txt", "file:///etc/passwd", "secret.txt%00", "..%252fsecret.txt",
]  # fmt: skip


@pytest.mark.parametrize("name", TRAVERSALS)
def test_no_parameter_leads_out_of_the_runs(client: TestClient, name: str) -> None:
    answers = [
        client.get(f"/static/{name}"),
        client.get(f"/{name}"),
        client.get(f"/api/runs/{name}/metrics"),
        client.post(f"/api/files/{name}"),
        client.get(f"/api/recordings/{name}"),
        client.get(f"/api/recordings/{name}/table?site=0"),
        client.post("/api/translate", json=ASK | {"run": name}),
        client.post("/api/attention", json=ASK | {"run": name, "target": "one"}),
        client.get("/api/recordings/x/tile", params={"site": name, "head": name}),
    ]
    for answer in answers:
        assert answer.status_code in (400, 404, 405)
        assert "nobody may read" not in answer.text
        assert "root:" not in answer.text
        read_error(answer)


@pytest.mark.parametrize("file", ["metrics.jsonl", "config.toml", "weights.safetensors", "vocabulary/source.json"])
def test_a_link_out_of_a_run_is_not_followed(tmp_path: Path, file: str) -> None:
    run = make_run(tmp_path / "run", "plain")
    outside = (run / file).rename(tmp_path / "outside")
    (run / file).symlink_to(outside)
    with TestClient(build_app([run]), base_url="http://localhost") as client:
        if file == "metrics.jsonl":
            answer = client.get("/api/runs/run/metrics")
            assert answer.status_code == 403
            assert "leads out of its folder" in read_error(answer)
        else:
            answer = client.post("/api/translate", json=ASK | {"run": "run"})
            assert f"{file}, which leads out of its folder" in answer.text


BODIES: dict[str, bytes] = {
    "empty": b"",
    "half": b'{"run": "transformer", "text": "on',
    "list": b"[1]",
    "number": b"1",
    "nothing": b"null",
    "nan": b'{"run": "transformer", "text": "one", "temperature": NaN}',
    "deep": b"[" * 3000,
    "bytes": b"\xff\xfe",
    "surrogate": b'{"run": "transformer", "text": "\\ud800"}',
    "unasked": b'{"run": "transformer", "text": "one", "path": "/etc/passwd"}',
    "blank": b'{"run": "transformer", "text": "  "}',
    "long": json.dumps(ASK | {"text": "a" * 201}).encode(),
    "beam": json.dumps(ASK | {"beam": 5}).encode(),
    "beam-0": json.dumps(ASK | {"beam": 0}).encode(),
    "beam-true": json.dumps(ASK | {"beam": True}).encode(),
    "huge": b'{"run": "transformer", "text": "one", "seed": 1' + b"0" * 900 + b"}",
    "masked": json.dumps(ASK | {"masked": [-1]}).encode(),
    "masked-many": json.dumps(ASK | {"masked": [0] * 99}).encode(),
    "masking": json.dumps(ASK | {"masking": "x"}).encode(),
    "run": json.dumps(ASK | {"run": {}}).encode(),
}


@pytest.mark.parametrize("path", ["/api/translate", "/api/attention"])
@pytest.mark.parametrize("name", BODIES)
def test_malformed_bodies_are_a_sentence(client: TestClient, path: str, name: str) -> None:
    answer = client.post(path, content=BODIES[name], headers={"Content-Type": "application/json"})
    if path == "/api/attention" and name.startswith("beam"):
        assert answer.status_code in (400, 404)
    assert 400 <= answer.status_code < 500
    read_error(answer)


@pytest.mark.parametrize("tokens", [[0], [2], [3], [99], [-1], "x", [True], [5] * 99])
def test_tokens_are_words_of_the_vocabulary(client: TestClient, tokens: Any) -> None:
    answer = client.post("/api/attention", json=ASK | {"tokens": tokens})
    assert answer.status_code == 400
    assert read_error(answer).startswith("tokens: got ")


def test_oversized_bodies_are_refused_before_they_are_read(client: TestClient) -> None:
    for path, most, kind in (
        ("/api/translate", LIMITS.body, "application/json"),
        ("/api/recordings", LIMITS.upload, BINARY["Content-Type"]),
    ):
        answer = client.post(path, content=b"x" * (most + 1), headers={"Content-Type": kind})
        assert answer.status_code == 413
        assert f"expected at most {most:,}" in read_error(answer)
        unannounced = client.post(path, content=iter([b"x" * 1000] * 1000), headers={"Content-Type": kind})
        assert unannounced.status_code == 413


def header(values: Any) -> bytes:
    text = values if isinstance(values, bytes) else json.dumps(values).encode()
    return struct.pack("<Q", len(text)) + text


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "short": b"\x01",
    "endless-header": struct.pack("<Q", 2**63 - 1) + b"{}",
    "long-header": struct.pack("<Q", 2**40) + b"{}",
    "no-json": header(b"{" * 500),
    "deep": header(b'{"__metadata__":' + b"[" * 20_000),
    "offsets": header({"0/weights": {"dtype": "F32", "shape": [1, 2, 2], "data_offsets": [0, 2**40]}}),
    "negative": header({"0/weights": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}}),
    "overflow": header({"0/weights": {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [0, 0]}}),
    "no-metadata": header({}),
    "sites": header({"__metadata__": {"regard": json.dumps({"version": 1, "sites": [{"kind": "whole"}] * 1000})}}),
    "pickle": b"\x80\x04cposix\nsystem\n(S'touch /tmp/regard-was-here'\ntR.",
    "zip": b"PK\x03\x04" + b"\x00" * 100,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_recordings_are_a_sentence(client: TestClient, name: str) -> None:
    answer = client.post("/api/recordings", content=HOSTILE[name], headers=BINARY)
    assert answer.status_code == 400
    read_error(answer)
    assert not Path("/tmp/regard-was-here").exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_checkpoints_are_a_sentence(tmp_path: Path, name: str) -> None:
    run = make_run(tmp_path / "run", "plain")
    (run / "weights.safetensors").write_bytes(HOSTILE[name])
    with TestClient(build_app([run]), base_url="http://localhost") as client:
        answer = client.post("/api/attention", json=ASK | {"run": "run", "target": "one"})
        assert answer.status_code == 400
        assert "weights.safetensors" in read_error(answer)


@pytest.mark.parametrize(
    ("setting", "value"), [("size", 10**9), ("hidden", 10**15), ("layers", 10**9), ("longest", 10**12)]
)
def test_a_configuration_cannot_ask_for_memory_that_its_weights_do_not_fill(
    tmp_path: Path, setting: str, value: int
) -> None:
    run = make_run(tmp_path / "run", "transformer")
    lines = (run / "config.toml").read_text().splitlines()
    (run / "config.toml").write_text(
        "\n".join(f"{setting} = {value}" if line.startswith(f"{setting} =") else line for line in lines)
    )
    with TestClient(build_app([run]), base_url="http://localhost") as client:
        answer = client.post("/api/attention", json=ASK | {"run": "run", "target": "one"})
        assert answer.status_code == 400
        read_error(answer)


def test_a_run_of_another_shape_is_refused_before_it_is_built(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "transformer")
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("hidden = 10", "hidden = 1000000"))
    with TestClient(build_app([run]), base_url="http://localhost") as client:
        answer = client.post("/api/attention", json=ASK | {"run": "run", "target": "one"})
        assert "of shape (10, 12) instead of (1000000, 12)" in read_error(answer)


values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=30),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
names = ["run", "text", "beam", "temperature", "seed", "length", "masked", "masking", "tokens", "target", "other"]
bodies = some.fixed_dictionaries(
    {}, optional={name: values | some.just(ASK.get(name, 1)) for name in names}
) | some.dictionaries(some.sampled_from(names), values, max_size=5)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(body=bodies, path=some.sampled_from(["/api/translate", "/api/attention"]))
def test_no_body_breaks_the_server(client: TestClient, body: Any, path: str) -> None:
    content = json.dumps(body)
    answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200 or 400 <= answer.status_code < 500
    assert "error of its own" not in answer.text
    if answer.status_code != 200:
        read_error(answer)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(
    part=some.sampled_from(["tile", "table", "rows", "labels", "weight"]),
    query=some.dictionaries(
        some.sampled_from(["site", "head", "up", "across", "row", "column", "x"]),
        some.sampled_from(["0", "1", "2", "24", "25", "-1", "mean", "9" * 30, "", "1e9", "٣", "../x"])
        | some.text(max_size=9),
    ),
)
def test_no_question_about_a_recording_breaks_the_server(client: TestClient, part: str, query: dict[str, str]) -> None:
    name = client.post("/api/files/attention.safetensors").json()["recording"]
    params = {key: value.encode("utf-8", "replace").decode() for key, value in query.items()}
    answer = client.get(f"/api/recordings/{name}/{part}", params=params)
    assert answer.status_code == 200 or 400 <= answer.status_code < 500
    if answer.status_code != 200:
        read_error(answer)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "r.safetensors"
    Recording.from_weights({"here": [[0.25, 0.75]]}, queries=["a"], keys=["b", "c"]).save(path)
    return path.read_bytes()


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(at=some.floats(0, 1, exclude_max=True), byte=some.integers(0, 255), kept=some.floats(0, 1) | some.just(1.0))
def test_a_damaged_recording_is_read_or_refused(
    client: TestClient, good: bytes, at: float, byte: int, kept: float
) -> None:
    damaged = bytearray(good)
    damaged[int(at * len(good))] = byte
    answer = client.post("/api/recordings", content=bytes(damaged[: int(kept * len(good))]), headers=BINARY)
    assert answer.status_code in (200, 400)
    if answer.status_code == 400:
        read_error(answer)
