"""Regression by command: learned beats fixed beats average, on the curve, on diabetes, and on any CSV."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from walking import walk

from regard.tasks import import_task
from regard.tasks.data.points import read_points

Regard = Callable[..., Any]
BRIEF = {"stop.steps": 60, "every.evaluate": 20, "every.log": 1}


@pytest.mark.parametrize("data", ["curve", "diabetes"])
def test_learned_beats_fixed_beats_average(regard: Regard, data: str) -> None:
    report = walk(regard, "regression", data, fields=BRIEF, cut_at=30)["test"]
    assert report["learned"] < 0.97 * report["fixed"] < 0.97 * report["average"]


def test_a_csv_is_learned_and_asked_in_its_own_units(regard: Regard) -> None:
    random = np.random.default_rng(4)
    rows = random.uniform(0, 100, (120, 2))
    lines = [f"{a},{b},{1000 + 3 * a}" for a, b in rows]
    Path("table.csv").write_text("\n".join(["a,b,value", *lines]))
    fields = BRIEF | {"bandwidths": "each", "stop.steps": 120}
    report = walk(regard, "regression", "table.csv", fields=fields, cut_at=30, item=("50,20",))["test"]
    assert report["learned"] < 0.2 * report["fixed"]
    assert "y, as the learned bandwidth has it" in Path("shown.svg").read_text()
    answer = regard("predict", "run", "50", "20").output
    assert float(answer.split("learned")[1]) == pytest.approx(1150, abs=15)


def test_another_file_is_measured_in_the_units_of_the_run(regard: Regard) -> None:
    random = np.random.default_rng(4)
    rows = random.uniform(0, 10, (120, 1))
    for name, factor in (("one.csv", 1), ("other.csv", 9)):
        lines = [f"{factor * a},{factor * a}" for (a,) in rows]
        Path(name).write_text("\n".join(["a,value", *lines]))
    regard("train", "regression", "one.csv", "--folder", "run", "--stop.steps", "1")
    for split in ("test", "validation"):
        found = json.loads(regard("evaluate", "run", "other.csv", "--split", split, "--json").output)[split]
        assert found["average"] > 500  # a spread of 26 around 45, seen from an average of 5


def test_the_fixed_bandwidth_is_the_definition() -> None:
    config = import_task("regression").configure(None, (), {})
    learned = import_task("regression").build_task(config)
    model = learned.model()
    _, known, values = learned.load_training(0)
    new = torch.tensor([[1.3]])
    weights = torch.softmax(-0.5 * (new - known[:, 0]) ** 2, -1)
    assert torch.allclose(model.attend_three_ways(new)["fixed"].output, weights @ values, atol=1e-6)
    assert torch.allclose(model.attend_three_ways(new)["average"].output, values.mean(), atol=1e-6)


def test_no_point_is_predicted_from_itself() -> None:
    learned = import_task("regression").build_task(import_task("regression").configure(None, (), {}))
    model = learned.model()
    with torch.no_grad():
        model.sharpness.fill_(1e4)  # with itself in sight the loss would be 0
    batch = learned.load_training(0)
    assert float(learned.loss(model, batch).total.detach()) > 1


BAD = {
    "text": ("a,b\n1,2\n3,x\n5,6\n", "data: got 'x' in line 3 of bad.csv, expected a number; fix: write a number, or"),
    "short": ("a,b\n1,2\n3\n", "data: got 1 fields in line 3 of bad.csv, expected 2, as in the first line; fix:"),
    "empty": ("", "data: got bad.csv, which is empty, expected a line of names and lines of numbers; fix: check"),
    "few": ("a,b\n1,2\n", "data: got 1 points in bad.csv, expected at least 3; fix: add more"),
    "three": (
        "a,b\n1,2\n3,4\n5,6\n",
        "data: got 3 points, expected at least 2 to learn from beside 2 that are held out",
    ),
    "one column": ("a\n1\n2\n3\n", "data: got 1 column in bad.csv, expected at least 2, inputs and a value; fix: add"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_sentence(regard: Regard, name: str) -> None:
    text, sentence = BAD[name]
    Path("bad.csv").write_text(text)
    done = regard("train", "regression", "bad.csv", "--folder", "run")
    assert done.code == 2
    assert done.errors.startswith(f"regard: {sentence}")
    assert not Path("run").exists()


def test_a_run_does_not_go_on_with_other_points(regard: Regard) -> None:
    assert regard("train", "regression", "--folder", "run", "--stop.steps", 2).code == 0
    done = regard("resume", "run", "--data.noise", "0.4", "--stop.steps", 4)
    assert "regard: data: got items whose fingerprint is " in done.errors


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    assert read_points(tmp_path / "t.csv", "a").values.tolist() == [1, 3, 5]
    assert read_points(tmp_path / "t.csv", "").names == ("a",)
