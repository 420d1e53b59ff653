"""What the page asks for, and that the answers are those of the library."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient
from tiny_runs import LIMITS, WORDS, collect_events, make_run

from regard.inspect.recording import Recording
from regard.tasks import read_config
from regard.tasks.translation import TranslationSearchOptions, Translator
from regard.web.app import build_app
from regard.web.store import Uploads

TEXT = "one two three"


def translate(client: TestClient, **values: Any) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the source, all branches, and the hypotheses."""
    found = collect_events(client.post("/api/translate", json={"run": "transformer", "text": TEXT} | values))
    assert [name for name, _ in found] == ["source", *["step"] * (len(found) - 2), "done"]
    branches = [branch for _, data in found[1:-1] for branch in data["branches"]]
    return found[0][1], branches, found[-1][1]["hypotheses"]


def test_the_page_is_told_what_is_served(client: TestClient) -> None:
    state = client.get("/api/state").json()
    assert [run["name"] for run in state["runs"]] == ["transformer", "bahdanau", "plain"]
    assert all(run["ready"] and run["task"] == "translation" for run in state["runs"])
    assert all(
        "-" in run["sample"] or " " in run["sample"] for run in state["runs"]
    )  # a number in words, to begin with
    assert state["files"] == ["attention.safetensors"]
    assert state["limits"]["beam"] == LIMITS.beam


@pytest.mark.parametrize("run", ["transformer", "bahdanau", "plain"])
@pytest.mark.parametrize("beam", [1, 3])
def test_the_hypotheses_are_those_of_the_translator(client: TestClient, place: Path, run: str, beam: int) -> None:
    source, branches, hypotheses = translate(client, run=run, beam=beam)
    translator = Translator.load(read_config(place / run), place / run)
    expected = translator.translate(
        [TEXT], TranslationSearchOptions(beam, beam, longest=LIMITS.tokens), attention=True
    )[0]
    assert source == {"tokens": expected.source, "unknown": [], "cut": 0}
    assert [one["text"] for one in hypotheses] == [one.text for one in expected.best]
    by_number = {branch["number"]: branch for branch in branches}
    for one, said in zip(hypotheses, expected.best, strict=True):
        assert one["log_prob"] == pytest.approx(said.log_prob, abs=1e-5)
        path = [by_number[number] for number in one["path"]]
        assert [branch["word"] for branch in path] == said.tokens
        if said.weights is None:
            assert all(branch["weights"] is None for branch in path)
        else:
            assert np.allclose([branch["weights"] for branch in path], said.weights, atol=1e-6)


@pytest.mark.parametrize("run", ["transformer", "bahdanau", "plain"])
@pytest.mark.parametrize("beam", [1, 4])
def test_no_model_of_these_tests_rambles(client: TestClient, run: str, beam: int) -> None:
    for masked in ([], [1]):
        _, _, hypotheses = translate(client, run=run, beam=beam, masked=masked)
        assert len(hypotheses[0]["tokens"]) <= LIMITS.tokens // 4


def test_temperature_draws_and_a_seed_draws_the_same(client: TestClient) -> None:
    said = {seed: translate(client, temperature=3.0, seed=seed)[2][0]["text"] for seed in range(6)}
    assert len(set(said.values())) > 1
    assert translate(client, temperature=3.0, seed=4)[2][0]["text"] == said[4]


@pytest.mark.parametrize("run", ["transformer", "bahdanau"])
def test_nobody_looks_at_a_masked_word(client: TestClient, run: str) -> None:
    _, branches, _ = translate(client, run=run, masked=[1])
    assert all(branch["weights"][1] == 0 for branch in branches)
    assert all(sum(branch["weights"]) == pytest.approx(1, abs=1e-5) for branch in branches)
    source, _, _ = translate(client, run=run, masked=[1], masking="input")
    assert source["tokens"] == ["▁one", "<unk>", "▁three", "</s>"]


def test_a_masked_word_changes_the_answer(client: TestClient) -> None:
    plain = translate(client)[2][0]
    hidden = translate(client, masked=[0, 1, 2])[2][0]
    unknown = translate(client, masked=[0, 1, 2], masking="input")[2][0]
    assert len({plain["log_prob"], hidden["log_prob"], unknown["log_prob"]}) == 3


def test_unknown_words_are_told(client: TestClient) -> None:
    source, _, _ = translate(client, text="one xyzzy")
    assert source == {"tokens": ["▁one", "<unk>", "</s>"], "unknown": ["▁xyzzy"], "cut": 0}


def test_what_is_cut_is_told(client: TestClient) -> None:
    source, _, _ = translate(client, text="one " * (LIMITS.tokens + 2), beam=1)
    assert len(source["tokens"]) == LIMITS.tokens
    assert source["cut"] == 3  # the end takes a place too


def read_numbers(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.headers["content-type"] == "application/octet-stream"
    return np.frombuffer(answer.content, dtype="<f4")


@pytest.mark.parametrize("run", ["transformer", "bahdanau"])
def test_attention_is_that_of_the_answer(client: TestClient, run: str) -> None:
    _, branches, hypotheses = translate(client, run=run, masked=[1])
    best, by_number = hypotheses[0], {branch["number"]: branch for branch in branches}
    question = {"run": run, "text": TEXT, "masked": [1]}
    found = client.post("/api/attention", json=question | {"tokens": best["tokens"]}).json()
    path = f"/api/recordings/{found['recording']}"
    site = max(place for place, one in enumerate(found["sites"]) if one["columns"] == 4)
    shape = [found["sites"][site][name] for name in ("heads", "rows", "columns")]
    weights = read_numbers(client, f"{path}/table?site={site}").reshape(shape).mean(0)
    assert np.allclose(weights, [by_number[number]["weights"] for number in best["path"]], atol=1e-5)
    labels = client.get(f"{path}/labels?site={site}").json()
    assert labels["columns"] == ["▁one", "▁two", "▁three", "</s>"]
    assert labels["rows"] == [by_number[number]["word"] for number in best["path"]]
    forced = client.post("/api/attention", json=question | {"target": "two one"}).json()
    labels = client.get(f"/api/recordings/{forced['recording']}/labels?site={site}").json()
    assert labels["rows"] == ["▁two", "▁one", "</s>"]


def test_a_model_that_looks_at_nothing_says_so(client: TestClient) -> None:
    answer = client.post("/api/attention", json={"run": "plain", "text": TEXT, "target": "one"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("show: got a model without attention, expected one that looks at")


def test_a_served_recording_is_opened_by_name(client: TestClient) -> None:
    found = client.post("/api/files/attention.safetensors").json()
    assert [(site["name"], site["whole"]) for site in found["sites"]] == [("small", True), ("large", False)]
    again = client.post("/api/files/attention.safetensors").json()
    assert again["recording"] == found["recording"]
    labels = client.get(f"/api/recordings/{found['recording']}/labels?site=0").json()
    assert labels["rows"][0] == WORDS[4]  # as text; the page never makes markup of it


def test_tiles_are_the_largest_of_their_cells(client: TestClient, place: Path) -> None:
    weights = Recording.load(place / "attention.safetensors")["large"].dense()
    name = client.post("/api/files/attention.safetensors").json()["recording"]
    for head, table in (("1", weights[1]), ("mean", weights.mean(0))):
        asked = f"/api/recordings/{name}/tile?site=1&head={head}"
        fine = read_numbers(client, f"{asked}&up=0&across=0&row=1&column=0").reshape(44, 130)
        assert np.allclose(fine, table[256:], atol=1e-7)
        coarse = read_numbers(client, f"{asked}&up=2&across=1&row=0&column=0").reshape(75, 65)
        expected = torch.nn.functional.max_pool2d(table[None], (4, 2))[0]
        assert np.allclose(coarse, expected, atol=1e-7)
    rows = read_numbers(client, f"/api/recordings/{name}/rows?site=1&head=1")
    assert np.allclose(rows, weights[1].amax(1))
    one = client.get(f"/api/recordings/{name}/weight?site=1&head=0&row=299&column=3").json()
    assert one["weight"] == pytest.approx(float(weights[0, 299, 3]), abs=1e-7)


def test_a_weight_of_a_translation_says_what_made_it(client: TestClient) -> None:
    asked = {"run": "transformer", "text": TEXT, "target": "one"}
    found = client.post("/api/attention", json=asked).json()
    (place,) = [place for place, site in enumerate(found["sites"]) if site["name"] == "decoder 0"]
    cell = f"/api/recordings/{found['recording']}/explanation?site={place}&row=1&column=2"
    made = client.get(f"{cell}&head=1").json()
    weights = read_numbers(client, f"/api/recordings/{found['recording']}/table?site={place}")
    row = weights.reshape(*(found["sites"][place][axis] for axis in ("heads", "rows", "columns")))[1, 1]
    assert made["weight"] == pytest.approx(float(row[2]), rel=1e-6)
    assert made["rank"] == 1 + int((row > row[2]).sum())
    facts = made["facts"]
    assert (facts["form"], facts["normalizer"], facts["hidden"]) == ("dot", "softmax", False)
    score = sum(near * far for near, far in zip(facts["query"], facts["key"], strict=True))
    assert score == pytest.approx(facts["score"], abs=1e-5)
    assert np.exp(score + facts["bias"] - facts["total"]) == pytest.approx(row[2], rel=1e-4)
    assert client.get(f"{cell}&head=mean").json()["facts"] is None  # of no single score


def test_a_recording_can_be_sent(client: TestClient, place: Path, tmp_path: Path) -> None:
    Recording.from_weights({"here": [[0.25, 0.75]]}, queries=["a"], keys=["b", "c"]).save(tmp_path / "r.safetensors")
    content = (tmp_path / "r.safetensors").read_bytes()
    found = client.post("/api/recordings", content=content, headers={"Content-Type": "application/octet-stream"}).json()
    assert [site["name"] for site in found["sites"]] == ["here"]
    assert read_numbers(client, f"/api/recordings/{found['recording']}/table?site=0").tolist() == [0.25, 0.75]


def test_old_recordings_go_when_there_is_no_room_and_those_that_were_sent_come_back(client: TestClient) -> None:
    question = {"run": "transformer", "text": TEXT, "target": "one"}
    translation = client.post("/api/attention", json=question).json()["recording"]
    content, headers = dump_recording(torch.rand(100, 100)), {"Content-Type": "application/octet-stream"}
    names = [client.post("/api/recordings", content=content, headers=headers).json()["recording"] for _ in range(12)]
    assert [client.get(f"/api/recordings/{name}").json()["recording"] for name in names] == names
    assert client.get(f"/api/recordings/{names[0]}/weight?site=0&head=0&row=99&column=99").json()["weight"] > 0
    answer = client.get(f"/api/recordings/{translation}")
    assert answer.status_code == 404
    assert answer.json()["error"].endswith("fix: ask for it anew: translate again, or open the file again")


def dump_recording(weights: torch.Tensor) -> bytes:
    """Return a recording as it is sent."""
    with tempfile.TemporaryDirectory() as folder:
        Recording.from_weights({"here": weights}).save(Path(folder) / "r.safetensors")
        return (Path(folder) / "r.safetensors").read_bytes()


def test_files_that_were_sent_are_removed(tmp_path: Path) -> None:
    uploads = Uploads(100)
    for name in ("a", "b", "c"):
        uploads.keep(uploads.write(bytes(40)), name)
    paths = [uploads.find(name) for name in "abc"]
    assert paths[0] is None  # the oldest had to go
    assert all(path is not None and path.is_file() for path in paths[1:])
    uploads.close()
    assert not paths[1].parent.exists()  # type: ignore[union-attr]


def test_all_small_sites_come_in_one_answer(client: TestClient, place: Path) -> None:
    _, _, [best, *_] = translate(client)
    question = {"run": "transformer", "text": TEXT, "tokens": best["tokens"]}
    found = client.post("/api/attention", json=question).json()
    path = f"/api/recordings/{found['recording']}"
    labels, tables = read_bundle(client.get(f"{path}/bundle").content, found["sites"])
    assert len(tables) == len(found["sites"]) > 2
    for site, table in enumerate(tables):
        assert np.array_equal(table, read_numbers(client, f"{path}/table?site={site}"))
        assert labels[site] == client.get(f"{path}/labels?site={site}").json()
    name = client.post("/api/files/attention.safetensors").json()["recording"]
    head = client.get(f"/api/recordings/{name}/bundle").content
    length = int.from_bytes(head[:4], "little")
    assert json.loads(head[4 : 4 + length])["sites"] == [[0, 1], None]  # the second is too large


def read_bundle(content: bytes, sites: Any) -> tuple[list[Any], list[Any]]:
    """Return labels and weights of each site, as the page reads them."""
    length = int.from_bytes(content[:4], "little")
    assert length % 4 == 0
    head, weights = json.loads(content[4 : 4 + length]), np.frombuffer(content[4 + length :], dtype="<f4")
    labels = [{"rows": head["labels"][rows], "columns": head["labels"][columns]} for rows, columns in head["sites"]]
    ends = np.cumsum([site["heads"] * site["rows"] * site["columns"] for site in sites])
    return labels, np.split(weights, ends[:-1])


def test_another_start_has_another_life(client: TestClient, place: Path) -> None:
    life = client.get("/api/alive").json()["life"]
    assert client.get("/api/alive").json()["life"] == life
    with TestClient(build_app([place / "plain"]), base_url="http://localhost") as other:
        assert other.get("/api/alive").json()["life"] != life


def test_no_message_shows_where_things_lie(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "secret" / "run", "plain")
    (folder / "config.toml").write_text('task = "translation"\n[data]\ntext = 3\n')
    with TestClient(build_app([folder]), base_url="http://localhost") as client:
        state = client.get("/api/state").text
        answer = client.post("/api/translate", json={"run": "run", "text": "one"}).text
    assert "expected" in state
    assert "secret" not in state + answer
    assert "tmp" not in state + answer


def test_a_run_that_gets_better_weights_is_opened_again(client: TestClient, place: Path) -> None:
    before = translate(client, run="bahdanau")[2][0]["log_prob"]
    file = place / "bahdanau" / "weights.safetensors"
    from safetensors.torch import load, save

    tensors = load(file.read_bytes())
    file.write_bytes(save({name: tensor * 1.5 for name, tensor in tensors.items()}))
    assert translate(client, run="bahdanau")[2][0]["log_prob"] != before
    file.write_bytes(save(tensors))
