"""Images, sounds and passages that runs are asked about."""

import io
import json
import re
import wave
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient
from tiny_runs import LIMITS, SMALL, make_untrained

from regard.tasks import import_task, read_config
from regard.training.lock import Lock
from regard.training.run_folder import create_run
from regard.training.tensors import collect_tensors, to_safetensors
from regard.web.app import build_app
from regard.web.limits import Limits
from regard.web.runs import is_askable, is_generated

BINARY = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked")
    for task in SMALL:
        make_untrained(folder / task, task)
    make_untrained(folder / "blind", "captioning", **{"model.attention": "none"})
    return folder


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[TestClient]:
    limits = Limits(file=40_000, pixels=10_000, listening=1.0, passage=300, kept=LIMITS.kept)
    with TestClient(build_app(list(place.iterdir()), limits=limits), base_url="http://localhost") as client:
        yield client


def make_picture(width: int = 30, height: int = 20) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(height * width * 3, dtype=np.uint8).reshape(height, width, 3)).save(file, "PNG")
    return file.getvalue()


def make_sound(seconds: float = 0.5) -> bytes:
    samples = np.sin(np.arange(int(8000 * seconds)) / 3) * 20_000
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setparams((1, 2, 8000, 0, "NONE", ""))
        written.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


def ask(client: TestClient, run: str, content: bytes = b"", **values: str) -> Any:
    return client.post(f"/api/runs/{run}/ask", params=values, content=content, headers=BINARY)


def table(client: TestClient, answer: Any) -> np.ndarray:
    """Return the weights of the answer, as the page asks for them."""
    site, last = answer["attention"]["sites"][-1], len(answer["attention"]["sites"]) - 1
    content = client.get(f"/api/recordings/{answer['attention']['recording']}/table?site={last}").content
    return np.frombuffer(content, "<f4").reshape(site["rows"], site["columns"])


def test_the_page_is_told_what_a_run_takes(client: TestClient) -> None:
    runs = {run["name"]: run for run in client.get("/api/state").json()["runs"]}
    told = {name: (run["takes"], run["questioned"]) for name, run in runs.items()}
    assert told["captioning"] == told["blind"] == ("image", False)
    assert told["speech"] == ("sound", False)
    assert told["reading"] == ("passage", True)


def test_an_image_is_described_with_a_look_at_it_for_each_word(client: TestClient) -> None:
    answer = ask(client, "captioning", make_picture()).json()
    assert answer["beside"]["image"].startswith("data:image/png;base64,")
    rows, columns = answer["beside"]["grid"]
    weights = table(client, answer)
    assert weights.shape[1] == rows * columns == answer["beside"]["keys"]
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    words = client.get(f"/api/recordings/{answer['attention']['recording']}/labels?site=0").json()["rows"]
    assert len(words) == len(weights)
    assert " ".join(words) == answer["text"]


def test_a_sound_is_written_down_beside_its_spectrogram(client: TestClient) -> None:
    answer = ask(client, "speech", make_sound(0.5)).json()
    beside = answer["beside"]
    assert beside["seconds"] == pytest.approx(0.5, abs=0.02)
    assert (beside["kind"], beside["bins"]) == ("sound", 40)
    assert table(client, answer).shape[1] == beside["keys"]


def test_a_passage_answers_a_question(client: TestClient) -> None:
    passage, question = "Anna lives in Rome. Boris plays chess.", "where does Anna live?"
    answer = ask(client, "reading", passage.encode(), question=question).json()
    assert answer["text"] in passage
    assert table(client, answer).shape == (9, 5)
    assert passage[answer["begin"] :].startswith(answer["text"])
    back, there = answer["attention"]["sites"]  # both directions
    assert [(site["name"], site["rows"], site["columns"]) for site in (back, there)] == [
        ("question to passage", 1, 9),
        ("passage to question", 9, 5),
    ]


def test_a_model_without_attention_answers_and_says_so(client: TestClient) -> None:
    answer = ask(client, "blind", make_picture()).json()
    assert (answer["attention"], answer["beside"]) == (None, None)


REFUSED = {
    "no image": ("captioning", b"not an image", {}, 400, "which is not an image"),
    "cut short": ("captioning", make_picture()[:80], {}, 400, "damaged or cut short"),
    "too many pixels": ("captioning", make_picture(1000, 11), {}, 400, "at most 10,000 pixels"),
    "nothing": ("captioning", b"", {}, 400, "which is not an image"),
    "too many bytes": ("captioning", bytes(40_001), {}, 413, "at most 40,000"),
    "no sound": ("speech", make_picture(), {}, 400, "a sound file: wav, flac, ogg or mp3"),
    "too long a sound": ("speech", make_sound(1.5), {}, 400, "at most 1;"),
    "no text": ("reading", b"\xff\xfe", {"question": "why?"}, 400, "not UTF-8"),
    "too long a passage": ("reading", b"a " * 151, {"question": "why?"}, 400, "at most 300"),
    "no question": ("reading", b"a b", {}, 400, "question: got no word"),
    "another field": ("captioning", make_picture(), {"path": "/etc/passwd"}, 400, "known names only"),
    "another run": ("../captioning", make_picture(), {}, 404, "expected one of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_is_one_sentence(client: TestClient, name: str) -> None:
    run, content, values, status, text = REFUSED[name]
    answer = ask(client, run, content, **values)
    assert (answer.status_code, text in answer.json()["error"]) == (status, True), answer.text
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    ("task", "asked", "settings"),
    [
        ("memory", r"(\w+( \w+)+\. )+where is \w+\?", {"data.items": "8", "data.held_out": "4"}),
        ("inversion", "[a-z]+", {"data.items": "8", "data.held_out": "4"}),
        ("regression", r"[\d.]+", {}),
        ("next-vector", "0", {"data.items": "40"}),
        ("digits", None, {}),
    ],
)
def test_every_task_has_a_view(tmp_path: Path, task: str, asked: str | None, settings: dict[str, str]) -> None:
    """An example can be asked again, as it was filled in; data that lie elsewhere are not opened."""
    run = make_untrained(tmp_path / "run", task, **settings)
    with TestClient(build_app([run]), base_url="http://localhost") as client:
        answer = ask(client, "run", example="yes").json()
        assert answer["attention"]["sites"]
        if asked is None:
            assert answer["beside"]["grid"] == [4, 4]
            assert ask(client, "run", make_picture()).json()["beside"]["keys"] == 16
        else:
            assert re.fullmatch(asked, answer["given"]["asked"])
            again = ask(client, "run", answer["given"]["asked"].encode()).json()
            assert len(again["attention"]["sites"]) == len(answer["attention"]["sites"])
    config = read_config(run)
    if hasattr(config.data, "source"):
        assert is_askable(config)
        assert not is_askable(replace(config, data=replace(config.data, source=str(tmp_path))))


def test_an_example_of_what_a_task_generates(tmp_path: Path) -> None:
    """The default data are offered; those of another configuration might be any folder and are not opened."""
    config = import_task("reading").configure(None, [], {"reader.hidden": "4", "reader.width": "6"})
    made = import_task("reading").build_task(config)
    lock = Lock()
    create_run(tmp_path / "run", config, made, lock)
    lock.close()
    (tmp_path / "run" / "weights.safetensors").write_bytes(to_safetensors(collect_tensors(made.model())))
    with TestClient(build_app([tmp_path / "run"]), base_url="http://localhost") as client:
        answer = ask(client, "run", example="yes").json()
        assert re.fullmatch(r"(Not \w+\. )*(Who|What|Where) [^?.]+\?( Not \w+\.)*", answer["question"])
        assert client.get("/api/state").json()["runs"][0]["example"] is True
        assert answer["given"]["question"] == answer["question"]
        assert answer["text"] in answer["given"]["passage"]
    assert is_generated(replace(config, data=replace(config.data, size=3, seed=9)))
    assert not is_generated(replace(config, data=replace(config.data, questions="/etc")))
    assert not is_generated(replace(config, data=replace(config.data, size=10**6)))


@pytest.mark.parametrize(
    ("task", "setting", "value", "said"),
    [
        ("speech", "hidden", 10**6, "of shape"),
        ("speech", "layers", 10**9, "at most 256"),
        ("speech", "window", 10**12, "at most 1,000"),
        ("captioning", "pixels", 10**6, "at most 2,048"),
        ("reading", "width", 10**6, "of shape"),
    ],
)
def test_a_configuration_cannot_ask_for_more_than_its_weights(
    tmp_path: Path, task: str, setting: str, value: int, said: str
) -> None:
    run = make_untrained(tmp_path / "run", task)
    lines = (run / "config.toml").read_text().splitlines()
    changed = [f"{setting} = {value}" if line.startswith(f"{setting} =") else line for line in lines]
    (run / "config.toml").write_text("\n".join(changed))
    content = {"speech": make_sound(), "captioning": make_picture(), "reading": b"a b"}[task]
    with TestClient(build_app([run]), base_url="http://localhost") as client:
        answer = ask(client, "run", content, **({"question": "who?"} if task == "reading" else {}))
        assert answer.status_code == 400
        assert said in answer.json()["error"]


def test_no_file_outside_of_the_run_is_read(tmp_path: Path) -> None:
    run = make_untrained(tmp_path / "run", "reading")
    words = json.loads((run / "words.json").read_text())
    (tmp_path / "outside.json").write_text(json.dumps(words))
    (run / "words.json").unlink()
    (run / "words.json").symlink_to(tmp_path / "outside.json")
    with TestClient(build_app([run]), base_url="http://localhost") as client:
        answer = ask(client, "run", b"a b", question="who?")
        assert answer.status_code == 403
        assert "leads out of its folder" in answer.json()["error"]
