"""Before training, every task says how large its parts are and what two of them share; what was learned is no test."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from regard.tasks import TASKS, import_task

Regard = Callable[..., Any]
SMALL: dict[str, dict[str, str]] = {
    "translation": {},
    "regression": {"data.points": "20"},
    "speech": {"data.size": "12", "data.held_out": "3"},
    "reading": {"data.size": "12", "data.held_out": "3"},
    "digits": {},
    "inversion": {"data.items": "12", "data.held_out": "3"},
    "next-vector": {"data.items": "20"},
    "captioning": {"data.scenes": "12", "data.held_out": "3"},
    "vqa": {"data.pixels": "8", "data.held_out": "2", "model.channels": "8,8"},
    "memory": {"data.items": "12", "data.held_out": "3"},
}


def write_text(folder: Path, count: int = 100) -> Path:
    (folder / "text.tsv").write_text("".join(f"some {number} words\tund {number}\n" for number in range(count)))
    return folder / "text.tsv"


def write_spots(folder: Path) -> Path:
    """Write images of one color; some in the test are among those that are learned from."""
    for part, colors in (("train", range(6)), ("test", (1, 90, 91))):
        place = folder / "spots" / part
        (place / "images").mkdir(parents=True)
        for number, color in enumerate(colors):
            Image.fromarray(np.full((8, 8, 3), color, dtype=np.uint8)).save(place / f"images/{number}.png")
        rows = [["is it dark?", "yes", number] for number in range(len(colors))]
        (place / "questions.json").write_text(json.dumps(rows))
    return folder / "spots"


def write_sounds(folder: Path, count: int = 20) -> Path:
    """Write two kinds of noise under many names."""
    (folder / "sounds").mkdir()
    for number in range(count):
        noise = np.random.default_rng(number % 2).normal(0, 0.1, 1600)
        soundfile.write(folder / "sounds" / f"{number}.wav", noise, 8000)
        (folder / "sounds" / f"{number}.txt").write_text("aha")
    return folder / "sounds"


@pytest.mark.parametrize("name", TASKS)
def test_every_task_says_first_how_large_its_parts_are(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    data = {"translation": write_text, "vqa": write_spots}.get(name)
    config = import_task(name).configure(None, (str(data(tmp_path)),) if data else (), SMALL.get(name, {}))
    first, *others = import_task(name).build_task(config).notes
    words = first.split(", ")
    assert [word.split(" for ")[1].split(" ")[0] for word in words[:3]] == ["training", "validation", "test"]
    assert all(int(word.split(" ")[0].replace(",", "")) >= 1 for word in words)
    wanted = ["1 of the 3 images for test is trained on too"] if name == "vqa" else []
    assert [note for note in others if "trained on" in note] == wanted


def test_clips_that_are_the_same_under_two_names_are_told(tmp_path: Path) -> None:
    notes = (
        import_task("speech")
        .build_task(import_task("speech").configure(None, (str(write_sounds(tmp_path)),), {}))
        .notes
    )
    assert notes[:3] == (
        "16 clips for training, 2 for validation, 2 for test",
        "2 of the 2 clips for validation are trained on too",
        "2 of the 2 clips for test are trained on too",
    )


def test_photographs_that_are_the_same_under_two_names_are_told(tmp_path: Path) -> None:
    from regard.tasks.captioning.datasets import CaptioningData, PhotoDataset

    (tmp_path / "images").mkdir()
    lines = []
    for number, (part, color) in enumerate((("train", 1), ("train", 2), ("dev", 1), ("test", 4))):
        Image.fromarray(np.full((8, 8, 3), color, dtype=np.uint8)).save(tmp_path / f"images/{number}.png")
        lines.append(f"{part}\t{number}.png\ta photo\n")
    (tmp_path / "captions.tsv").write_text("".join(lines))
    assert PhotoDataset(CaptioningData(images=str(tmp_path))).describe() == [
        "2 images for training, 1 for validation, 1 for test",
        "1 of the 1 images for validation is trained on too",
    ]


def test_points_that_are_in_two_parts_are_told(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text("x,y\n" + "1,2\n" * 30 + "3,4\n5,6\n")
    notes = (
        import_task("regression")
        .build_task(import_task("regression").configure(None, (str(tmp_path / "points.csv"),), {}))
        .notes
    )
    assert any(note.endswith("items for test are trained on too") for note in notes)


def test_passages_that_are_in_two_files_are_told(tmp_path: Path) -> None:
    answers = [{"text": "b", "answer_start": 2}]
    for file, names in (("train-v1.1.json", "abcdef"), ("dev-v1.1.json", "az")):
        articles = [
            {"paragraphs": [{"context": f"a b {name}", "qas": [{"question": "q", "id": name, "answers": answers}]}]}
            for name in names
        ]
        (tmp_path / file).write_text(json.dumps({"data": articles}))
    notes = (
        import_task("reading")
        .build_task(import_task("reading").configure(None, (str(tmp_path),), {"data.validation": "1"}))
        .notes
    )
    assert notes[0] == "5 questions for training, 1 for validation, 2 for test"
    assert [note for note in notes if "trained on too" in note] in (
        [],  # the passage that is in both was cut off for validation
        ["1 of the 2 passages for test is trained on too"],
    )


def test_a_run_is_not_measured_on_what_it_was_trained_on(regard: Regard, tmp_path: Path) -> None:
    """Lines that are added move the cut: a part of what is now the test was learned."""
    small = {"vocabulary.kind": "word", "model.size": 8, "recurrent.hidden": 8, "attention.hidden": 8, "stop.steps": 1}
    fields = [f"--{name}={value}" for name, value in small.items()]
    done = regard("train", "translation", write_text(tmp_path, 60), "--folder", "run", *fields)
    assert done.code == 0, done.errors
    assert "note: 48 pairs for training, 6 for validation, 6 for test\n" in done.output
    assert regard("evaluate", "run", "--json").code == 0
    write_text(tmp_path, 600)
    sentence = (
        "regard: data: got pairs that are not those that run was trained on, or are cut otherwise, expected parts of "
        "which none was trained on; fix: bring them back with the version of regard, or name other data to measure on\n"
    )
    assert regard("evaluate", "run") == (2, "", sentence)
    assert regard("evaluate", "run", "text.tsv", "--json").code == 0
    assert "whose fingerprint is" in regard("resume", "run").errors
