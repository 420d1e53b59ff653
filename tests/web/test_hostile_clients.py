"""Numbers, texts, tokens, recordings and run folders that mean harm: one sentence each, and the others are served."""

import json
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from starlette.testclient import TestClient
from tiny_runs import LIMITS, make_run

from regard.datasets.bounds import get_bound
from regard.inspect.recording import Recording
from regard.inspect.recording.file import read_recording
from regard.web.app import build_app
from regard.web.limits import Limits
from regard.web.responses import RefusedError
from regard.web.security import Access
from regard.web.store import Store
from regard.web.workers import Ticket

ASK = {"run": "transformer", "text": "one"}
JSON = {"Content-Type": "application/json"}
BINARY = {"Content-Type": "application/octet-stream"}


def read_error(answer: Any) -> str:
    """Return the message of an answer, after checking its form."""
    text: str = answer.json()["error"]
    assert all(part in text for part in (": got ", ", expected ", "; fix: "))
    assert "\n" not in text
    return text


# ---- numbers and bodies

NUMBERS = ["1" + "0" * 400, "-1" + "0" * 400, "1" + "0" * 5000, "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "-1",
           "true", "null", '"1"', "[1]", "{}", "1e-999999", "5.0000001", "9" * 20]  # fmt: skip


@pytest.mark.parametrize("name", ["temperature", "length", "beam", "seed", "masked"])
@pytest.mark.parametrize("number", NUMBERS, ids=range(len(NUMBERS)))
def test_no_number_is_a_fault(client: TestClient, name: str, number: str) -> None:
    body = json.dumps(ASK)[:-1] + f', "{name}": {number if name != "masked" else f"[{number}]"}}}'
    for path in ("/api/translate", "/api/attention"):
        answer = client.post(path, content=body, headers=JSON)
        assert answer.status_code in (200, 400, 413), answer.text
        if answer.status_code != 200:
            read_error(answer)


def test_a_temperature_of_400_digits_is_told(client: TestClient) -> None:
    body = json.dumps(ASK | {"temperature": 10**400})
    answer = client.post("/api/translate", content=body, headers=JSON)
    assert answer.status_code == 400
    assert read_error(answer) == (
        "temperature: got an integer of many digits, expected a number from 0 to 5; fix: use 0"
    )  # fmt: skip


HOSTILE_BODIES = {
    "twice": b'{"run": "plain", "run": "transformer", "text": "one"}',
    "twice inside": b'{"run": "transformer", "text": "one", "masked": {"a": 1, "a": 2}}',
    "deep lists": b'{"run": "transformer", "text": ' + b"[" * 1900 + b"]" * 1900 + b"}",
    "deep objects": b'{"a":' * 700,
    "utf-16": json.dumps(ASK).encode("utf-16"),
    "latin-1": '{"run": "transformer", "text": "é"}'.encode("latin-1"),
    "bom": b"\xef\xbb\xbf" + json.dumps(ASK).encode(),
    "nul": b'{"run": "transformer", "text": "\x00"}',
    "surrogates": b'{"run": "transformer", "text": "a\\udc80"}',
    "a name of surrogates": b'{"run": "transformer", "text": "a", "\\ud800": 1}',
    "a run of surrogates": b'{"run": "\\ud800", "text": "a"}',
    "trailing": json.dumps(ASK).encode() + b"{}",
}


@pytest.mark.parametrize("name", HOSTILE_BODIES)
def test_no_body_is_a_fault(client: TestClient, name: str) -> None:
    answer = client.post("/api/translate", content=HOSTILE_BODIES[name], headers=JSON)
    assert answer.status_code == 400
    read_error(answer)


QUERIES = [
    "site=0&site=1",
    "site=1" + "0" * 400,
    "site=-1",
    "site=NaN",
    "site=%ff",
    "site=0&head=%ed%a0%80",
    "site=0" * 9,
]


@pytest.mark.parametrize("query", QUERIES)
def test_no_query_is_a_fault(client: TestClient, query: str) -> None:
    name = client.post("/api/files/attention.safetensors").json()["recording"]
    answer = client.get(f"/api/recordings/{name}/tile?{query}")
    assert answer.status_code == 400
    read_error(answer)


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "1e3", "²", "0x10", " 1 1", ""])
def test_no_length_is_a_fault(client: TestClient, length: str) -> None:
    headers = {**JSON, "Content-Length": length.encode("latin-1")}
    answer = client.post("/api/translate", content=iter([json.dumps(ASK).encode()]), headers=headers)  # type: ignore[dict-item]
    assert answer.status_code in (200, 400, 413)


# ---- tokens


@pytest.mark.parametrize("token", ["", " ", "\t", "a b", "ä", "x" * 201, "a\n"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_token_that_admits_everyone_or_nobody_is_refused(host: str, token: str) -> None:
    with pytest.raises(ValueError, match=r"token: got .*, expected 1 to 200 printable .*; fix: leave --token out"):
        Access.from_host(host, token=token)


def test_an_empty_token_on_the_command_line_is_one_sentence(regard: Callable[..., Any], tmp_path: Path) -> None:
    done = regard("serve", str(make_run(tmp_path / "run", "plain")), "--token", "")
    assert done.code == 2
    assert done.errors.startswith("regard: token: got an empty one, expected 1 to 200 printable characters of ASCII")


# ---- recordings


def make_recording(sites: int, letters: int = 0) -> Recording:
    return Recording.from_weights({f"{'x' * letters}{number}": torch.eye(1) for number in range(sites)})


def test_names_and_sites_count_as_what_is_kept() -> None:
    store = Store(1_000_000)
    with pytest.raises(RefusedError, match=r"recording: got \d,\d{3},\d{3} bytes, expected at most 1,000,000"):
        store.add("", make_recording(1000))
    with pytest.raises(RefusedError, match="expected at most 1,000,000"):
        store.add("", make_recording(100, letters=2500))
    for _ in range(5):
        store.add("", make_recording(400))
    assert (len(store.recordings), store.bytes <= 1_000_000) == (1, True)


def test_what_is_kept_is_what_it_is_counted_for() -> None:
    """The memory that many sites take is not more than what the store says of it."""
    resource_page = os.sysconf("SC_PAGE_SIZE")

    def measure_resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource_page

    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc")
    store, before = Store(2**28), measure_resident()
    store.add("", make_recording(20_000, letters=50))
    assert measure_resident() - before < 1.5 * store.bytes


def make_file(sites: int, **more: Any) -> bytes:
    about = {"version": 1, "metadata": {}, "notes": [], "sites": [{"name": "a", "kind": "whole", **more}] * sites}
    tensors = {f"{number}/weights": torch.ones(1, 1, 1) for number in range(sites)}
    return save(tensors, metadata={"regard": json.dumps(about)})


def test_sites_are_counted_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.inspect.recording.file.SITES", 5)
    (tmp_path / "r").write_bytes(make_file(6))
    with pytest.raises(ValueError, match=r"r: sites: got 6, expected at most 5; fix: use a file that Recording.save"):
        Recording.load(tmp_path / "r")


def test_loading_ends_with_its_time(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(make_file(300))
    ticket, turns = Ticket(1000.0), []

    def check() -> None:
        turns.append(1)
        if len(turns) == 50:
            ticket.end = 0.0
        ticket.check()

    with pytest.raises(RefusedError, match="time: got more than 1000 s, expected an answer within them"):
        read_recording(tmp_path / "r", 2**20, check_interrupt=check)
    assert len(turns) == 50


def test_an_upload_of_many_sites_ends_with_its_time() -> None:
    limits = Limits(seconds=0.15)
    with TestClient(build_app([], limits=limits), base_url="http://localhost") as client:
        answer = client.post("/api/recordings", content=make_file(20_000), headers=BINARY)
    assert answer.status_code == 503
    assert read_error(answer).startswith("time: got more than 0.15 s")


@pytest.mark.parametrize(
    "more",
    [
        {"labels": {"queries": ["\ud800"], "keys": ["a"]}},
        {"name": "\udfff"},
        {"name": "x" * 5000},
        {"kind": "\ud800"},
        {"labels": {"queries": ["a"], "keys": ["a"], "\ud800": 1}},
    ],
    ids=["label", "name", "long-name", "kind", "key"],
)
def test_text_that_cannot_be_written_is_not_kept(client: TestClient, more: dict[str, Any]) -> None:
    answer = client.post("/api/recordings", content=make_file(1, **more), headers=BINARY)
    assert answer.status_code == 400
    read_error(answer)


def test_half_a_surrogate_pair_is_refused_when_it_is_labelled(tmp_path: Path) -> None:
    recording = Recording.from_weights({"a": torch.eye(1)})
    with pytest.raises(ValueError, match="queries of a: got half a surrogate pair, expected text that can be written"):
        recording.label(["\ud800"], ["b"])
    recording.notes.append("\ud800")
    with pytest.raises(ValueError, match=r"metadata: got something else \(.*surrogates not allowed\)"):
        recording.save(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_no_json_takes_more_memory_than_its_file_may(client: TestClient) -> None:
    """Empty objects take forty times their text."""
    text = json.dumps({"version": 1, "sites": [], "notes": [], "metadata": {"a": [{}] * 2000}}, separators=(",", ":"))
    answer = client.post("/api/recordings", content=save({}, metadata={"regard": text}), headers=BINARY)
    assert answer.status_code == 400
    assert f"values, expected at most {LIMITS.upload // get_bound('recording', 'value share'):,}" in read_error(answer)


def test_messages_show_no_path_of_the_server(client: TestClient, place: Path) -> None:
    for content in (b"", b"x" * 99, make_file(1, kind="none"), save({"a": torch.eye(2)})):
        text = read_error(client.post("/api/recordings", content=content, headers=BINARY))
        assert "what was given" in text
        assert "tmp" not in text
        assert str(place) not in text


# ---- run folders


def nest_config(run: Path) -> None:
    (run / "config.toml").write_text("a = " + "[" * 100_000)


def dot_config(run: Path) -> None:
    (run / "config.toml").write_text("a" + ".a" * 60_000 + " = 1")


def quote_config(run: Path) -> None:
    (run / "config.toml").write_text("a = {" + "'a'." * 15_000 + "a = 1}")


def write_surrogate(run: Path) -> None:
    (run / "versions.json").write_text('{"format": "\\ud800"}')


def write_brackets(run: Path) -> None:
    (run / "versions.json").write_text("[" * 100_000)


def replace_by_fifo(run: Path) -> None:
    (run / "config.toml").unlink()
    os.mkfifo(run / "config.toml")


def replace_words_by_fifo(run: Path) -> None:
    (run / "vocabulary" / "source.json").unlink()
    os.mkfifo(run / "vocabulary" / "source.json")


def loop(run: Path) -> None:
    (run / "config.toml").unlink()
    (run / "config.toml").symlink_to("config.toml")


def replace_by_folder(run: Path) -> None:
    (run / "config.toml").unlink()
    (run / "config.toml").mkdir()


def move_away(run: Path) -> None:
    run.rename(run.with_name("elsewhere"))


def write_latin(run: Path) -> None:
    (run / "config.toml").write_bytes(b"a = '\xe9'")


def crowd(run: Path) -> None:
    for number in range(get_bound("run folder", "entries")):
        (run / str(number)).touch()


def write_large(run: Path) -> None:
    with (run / "config.toml").open("ab") as file:
        file.truncate(2**30)


def write_huge_number(run: Path) -> None:
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("held_out = ", "held_out = 1" + "0" * 400 + " # "))


BAD = [
    nest_config,
    dot_config,
    quote_config,
    write_surrogate,
    write_brackets,
    replace_by_fifo,
    loop,
    replace_by_folder,
    move_away,
    write_latin,
    crowd,
    write_large,
    write_huge_number,
]


@pytest.mark.parametrize("damage", BAD, ids=lambda damage: damage.__name__)
def test_one_bad_run_is_listed_as_broken_and_the_others_are_served(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = make_run(tmp_path / "bad", "plain"), make_run(tmp_path / "good", "plain")
    with TestClient(build_app([bad, good]), base_url="http://localhost") as client:
        damage(bad)
        runs = {run["name"]: run for run in client.get("/api/state").json()["runs"]}
        assert runs["good"]["ready"] is True
        text = runs["bad"]["error"]
        assert all(part in text for part in (": got ", ", expected ", "; fix: "))
        answer = client.post("/api/attention", json={"run": "bad", "text": "one", "target": "one"})
        assert 400 <= answer.status_code < 500
        for one in (text, read_error(answer)):
            assert str(tmp_path) not in one
    assert not any(record.exc_info for record in caplog.records)


def test_a_bad_vocabulary_is_one_sentence_and_not_waited_for(tmp_path: Path) -> None:
    bad = make_run(tmp_path / "bad", "plain")
    replace_words_by_fifo(bad)
    with TestClient(build_app([bad]), base_url="http://localhost") as client:
        answer = client.post("/api/attention", json={"run": "bad", "text": "one", "target": "one"})
        assert "not a plain file" in read_error(answer)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_run_that_may_not_be_read_is_one_sentence(tmp_path: Path) -> None:
    bad = make_run(tmp_path / "bad", "plain")
    with TestClient(build_app([bad]), base_url="http://localhost") as client:
        bad.chmod(0)
        assert "cannot be read" in client.get("/api/state").json()["runs"][0]["error"]
        bad.chmod(0o700)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38])
def test_a_model_of_numbers_that_are_none_is_one_sentence(tmp_path: Path, value: float) -> None:
    run = make_run(tmp_path / "run", "transformer")
    tensors = load((run / "weights.safetensors").read_bytes())
    broken = {name: torch.full_like(tensor, value) for name, tensor in tensors.items()}
    (run / "weights.safetensors").write_bytes(save(broken))
    with TestClient(build_app([run]), base_url="http://localhost") as client:
        answer = client.post("/api/translate", json={"run": "run", "text": "one"})
        assert "NaN" not in answer.text
        assert "error of its own" not in answer.text
        answer = client.post("/api/attention", json={"run": "run", "text": "one", "target": "one"})
        assert answer.status_code in (200, 400, 409)


def test_metrics_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "plain")
    (run / "metrics.jsonl").unlink()
    os.mkfifo(run / "metrics.jsonl")
    with TestClient(build_app([run]), base_url="http://localhost") as client:
        assert "not a plain file" in read_error(client.get("/api/runs/run/metrics"))


def test_threads_are_none_the_more_afterwards() -> None:
    assert threading.active_count() < 40


def test_headers_of_any_claim_are_bounded() -> None:
    content = struct.pack("<Q", 2**62) + b"{}"
    with TestClient(build_app([]), base_url="http://localhost") as client:
        assert client.post("/api/recordings", content=content, headers=BINARY).status_code == 400
