"""The next vector by command: near the noise floor, and the weights at the right place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from walking import walk

from regard.tasks import import_task
from regard.tasks.data.sequences import RULES
from regard.tasks.next_vector.config import NextVectorData
from regard.tasks.next_vector.task import load_splits

Regard = Callable[..., Any]
BRIEF = {"items": 2000, "stop.epochs": 30, "every.log": 5, "every.evaluate": 100, "every.save": 25}


def test_the_weights_find_the_name_that_is_repeated(regard: Regard) -> None:
    report = walk(regard, "next-vector", "retrieval", fields=BRIEF, cut_at=110)["test"]
    assert report["pointed"] >= 99
    assert report["error"] < 1.3 * report["noise floor"]
    assert report["error"] < 0.1 * min(report["last value"], report["mean"])


@pytest.mark.parametrize("rule", ["rotation", "linear"])
def test_a_matrix_is_learned_from_the_last_vector(regard: Regard, rule: str) -> None:
    done = regard(
        "train", "next-vector", rule, "--folder", "run", "--items", 1500, "--stop.epochs", 25, "--every.log", 99
    )
    assert done.code == 0
    config = import_task("next-vector").configure(None, (rule,), {"data.items": "1500"})
    report = import_task("next-vector").load(config, Path("run")).evaluate(None, "test")["test"].metrics
    assert report["error"] < 1.5 * report["noise floor"] < 0.1 * min(report["last value"], report["mean"])


@pytest.mark.parametrize("rule", RULES)
def test_the_last_vector_follows_from_those_before(rule: str) -> None:
    """Without noise the rule is exact: a matrix fits it, or the vector was there before."""
    found = RULES[rule](200, 6, 4, 0.0, 3)
    before, last = found.vectors[:, -2], found.vectors[:, -1]
    if rule == "retrieval":
        assert np.array_equal(found.vectors[np.arange(200), found.expected_position], last)
    else:
        matrix = np.linalg.lstsq(before, last, rcond=None)[0]
        assert np.allclose(before @ matrix, last)


def test_a_file_is_cut_into_sequences_and_keeps_its_order(regard: Regard) -> None:
    np.save("wave.npy", np.stack([np.sin(np.arange(200) / 5), np.cos(np.arange(200) / 5)], axis=1))
    done = regard("train", "next-vector", "wave.npy", "--folder", "run", "--stop.epochs", 20, "--length", 6)
    assert done.code == 0, done.errors
    config = import_task("next-vector").configure(None, ("wave.npy",), {"data.length": "6"})
    learned = import_task("next-vector").build_task(config)
    assert learned.sets.validation[0].shape == (35, 6, 2)
    assert torch.equal(learned.load_training(0)[0][1, 0], learned.load_training(0)[0][0, 1])
    report = import_task("next-vector").load(config, Path("run")).evaluate(None, "test")["test"].metrics
    assert report["error"] < 0.3 * report["last value"]


@pytest.mark.parametrize(
    ("rows", "length"), [(45, 8), (46, 8), (47, 8), (100, 8), (20, 3), (21, 3), (301, 6), (600, 99)]
)
def test_no_moment_of_a_series_is_in_two_parts(tmp_path: Path, rows: int, length: int) -> None:
    path = tmp_path / "series.npy"
    np.save(path, np.arange(2.0 * rows).reshape(rows, 2))
    sets = load_splits(NextVectorData(source=str(path), length=length))
    parts = [sets.load_training(0)[0], sets.validation[0], sets.tests["test"][0]]
    moments = [{float(row[0]) for row in part.reshape(-1, 2)} for part in parts]
    assert sum(map(len, moments)) == len(set().union(*moments)) == rows
    assert max(moments[0]) < min(moments[1]) <= max(moments[1]) < min(moments[2])
    assert all(len(part) >= 1 and part.shape[1] == length for part in parts)


def test_numbers_are_scaled_by_those_that_are_learned_from(tmp_path: Path) -> None:
    path = tmp_path / "series.npy"
    np.save(path, np.concatenate([np.tile([[0.0], [2.0]], (30, 1)), np.full((40, 1), 1000.0)]))
    sets = load_splits(NextVectorData(source=str(path), length=5))
    assert set(sets.load_training(0)[0].flatten().tolist()) == {-1.0, 1.0}
    assert set(sets.validation[0].flatten().tolist()) == {999.0}


def test_bad_files_are_one_sentence_each(regard: Regard) -> None:
    Path("text.npy").write_text("not an array")
    np.save("small.npy", np.zeros((5, 2)))
    np.save("objects.npy", np.array([{}], dtype=object))
    for name, sentence in {
        "none.npy": "data: got no file none.npy, expected a rule, a .npy or a .csv file; fix: check the path",
        "text.npy": "expected a .npy file of numbers; fix: save it with numpy.save",
        "objects.npy": "expected a .npy file of numbers; fix: save it with numpy.save",
        "small.npy": "got 5 rows in small.npy, expected at least 20, so that a fifth of them has sequences of 3; fix: ",
    }.items():
        done = regard("train", "next-vector", name, "--folder", "run")
        assert (done.code, done.errors.count("\n")) == (2, 1)
        assert sentence in done.errors
        assert not Path("run").exists()


@pytest.mark.parametrize("reading", ["gumbel", "gumbel-straight"])
def test_an_answer_is_not_drawn(reading: str) -> None:
    """In training, looks are drawn; what is then evaluated looks at the best place, every time."""
    values = {"data.items": "100", "model.aggregate": reading}
    task = import_task("next-vector").build_task(import_task("next-vector").configure(None, (), values))
    torch.manual_seed(4)
    model, vectors = task.model(), task.sets.validation[0][:, :-1]
    assert not torch.equal(model(vectors).vector, model(vectors).vector)
    model.eval()
    best = (
        import_task("next-vector")
        .build_task(import_task("next-vector").configure(None, (), values | {"model.aggregate": "argmax"}))
        .model()
    )
    best.load_state_dict(model.state_dict())
    assert torch.equal(model(vectors).vector, best(vectors).vector)
    assert torch.equal(model(vectors).vector, model(vectors).vector)


def test_a_resumption_that_does_not_fit_the_weights_changes_nothing(regard: Regard) -> None:
    fields = ("--data.items", 60, "--model.size", 6, "--stop.steps", 1)
    assert regard("train", "next-vector", "--folder", "run", *fields).code == 0
    before = {name: (Path("run") / name).read_bytes() for name in ("config.toml", "command.txt")}
    done = regard("resume", "run", "--model.size", 4, "--stop.steps", 2)
    assert done.code == 2
    assert "expected the weights of this model; fix: " in done.errors
    assert {name: (Path("run") / name).read_bytes() for name in before} == before
    assert regard("resume", "run", "--stop.steps", 2).code == 0


def test_a_series_is_forecast_in_its_own_units_and_drawn(regard: Regard) -> None:
    """A wave of twelve moments around 500, with a date in each row and a gap."""
    rows = [
        f"2024-01-{n % 28 + 1:02d};{'' if n == 40 else 500 + round(100 * np.sin(np.pi * n / 6), 3)}" for n in range(150)
    ]
    for name, part in (("old.csv", rows[:130]), ("all.csv", rows)):
        Path(name).write_text("\n".join(["Tag;Menge", *part]))
    done = regard("train", "next-vector", "old.csv", "--folder", "run", "--stop.steps", 150)
    assert done.code == 0, done.errors
    assert "Tag: dates, left out" in done.output
    assert "1 of 130 rows have no value in Menge: filled in with the value before" in done.output
    said = regard("predict", "run", "old.csv", "--steps", 12, "--show", "ahead.png").output.splitlines()
    assert said[0] == "step\tMenge"
    numbers = [float(line.split("\t")[1]) for line in said[1:13]]
    wanted = [500 + 100 * np.sin(np.pi * n / 6) for n in range(130, 142)]
    assert np.abs(np.array(numbers) - wanted).max() < 40
    assert Path("ahead.png").read_bytes().startswith(b"\x89PNG")
    weights = np.array(json.loads(regard("predict", "run", "old.csv", "--steps", 3, "--json").output)["weights"])
    assert weights.shape == (3, 24 - 1 + 3)
    assert np.allclose(weights.sum(1), 1, atol=1e-5)
    assert weights[0, 24:].sum() == weights[1, 0] == 0, "each step looks at the 24 rows before it"
    assert regard("show", "run", "old.csv").output.splitlines()[2].startswith("attention of each step over the rows ")
    report = json.loads(regard("evaluate", "run", "all.csv", "--json").output)["all.csv"]
    assert report["items"] == 150 - 24
    assert report["error"] < 0.3 * report["last value"]
    assert "in the units of the file, the root of the mean squared error is Menge " in regard("evaluate", "run").output
    Path("short.csv").write_text("Menge\n1\n2\n3\n")
    assert regard("predict", "run", "short.csv").errors == (
        "regard: data: got 3 rows in short.csv, expected at least 24, as the run looks at; fix: add rows\n"
    )
    assert regard("predict", "run", "old.csv", "--steps", 0).code == 2
