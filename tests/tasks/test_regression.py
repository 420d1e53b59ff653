"""Regression by command: learned beats fixed beats average, on the curve, on diabetes, and on any CSV."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from walking import walk

from regard.errors import InputError
from regard.tasks import import_task
from regard.tasks.data.columns import ColumnChoice
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
    assert answer.startswith("value: ")
    assert float(answer.split("learned")[1]) == pytest.approx(1150, abs=15)


def test_another_file_is_measured_in_the_units_of_the_run(regard: Regard) -> None:
    random = np.random.default_rng(4)
    rows = random.uniform(0, 10, (120, 1))
    for name, factor in (("one.csv", 1), ("other.csv", 9)):
        lines = [f"{factor * a},{factor * a}" for (a,) in rows]
        Path(name).write_text("\n".join(["a,value", *lines]))
    regard("train", "regression", "one.csv", "--folder", "run", "--stop.steps", "1")
    found = json.loads(regard("evaluate", "run", "other.csv", "--json").output)["other.csv"]
    assert found["items"] == 120  # all of it: none was trained on
    assert found["average"] > 500  # a spread of 26 around 45, seen from an average of 5
    own = json.loads(regard("evaluate", "run", "one.csv", "--split", "validation", "--json").output)
    assert own["validation"]["items"] == 24
    assert "squared error of value" in regard("evaluate", "run").output


def test_the_fixed_bandwidth_is_the_definition() -> None:
    config = import_task("regression").configure(None, (), {})
    learned = import_task("regression").build_task(config)
    model = learned.model()
    _, known, values = learned.load_training(0)
    new = torch.tensor([[1.3]])
    weights = torch.softmax(-0.5 * (new - known[:, 0]) ** 2, -1)
    assert torch.allclose(model.attend_three_ways(new)["fixed"].output, weights @ values, atol=1e-6)
    assert torch.allclose(model.attend_three_ways(new)["average"].output, values.mean(), atol=1e-6)


def test_the_rows_of_a_file_are_predicted_one_by_one(regard: Regard) -> None:
    lines = [f"{'north' if i % 2 else 'south'};{i},5;{3 * i + 10 * (i % 2)}" for i in range(20)]
    Path("own.csv").write_text("\n".join(["side;size;price", *lines]))
    Path("new.csv").write_text("price;size;side\n;7,5;south\n;;north\n;9,25;north\n")
    assert regard("train", "regression", "own.csv", "--folder", "run", "--stop.steps", "1").code == 0
    done = regard("predict", "run", "new.csv")
    rows = [line.split("\t") for line in done.output.splitlines()]
    assert [row[:2] for row in rows] == [["south", "7.5"], ["north", "9.25"]]
    assert rows[0][-1].split() == regard("predict", "run", "south", "7.5").output.split()
    assert "size: got nothing, expected a number; fix: write a number" in done.errors
    assert (done.code, "1 of 3 without an answer" in done.errors) == (2, True)


def test_no_point_is_predicted_from_itself() -> None:
    learned = import_task("regression").build_task(import_task("regression").configure(None, (), {}))
    model = learned.model()
    with torch.no_grad():
        model.sharpness.fill_(1e4)  # with itself in sight the loss would be 0
    batch = learned.load_training(0)
    assert float(learned.loss(model, batch).total.detach()) > 1


BAD = {
    "text": (
        "a;b\n1;2\n3;x\n5;6\n",
        "data: got 'x' in column b, line 3 of bad.csv, separated by semicolons, expected a number; fix: write a number",
    ),
    "short": (
        "a,b\n1,2\n3,4\n5,6\n7,8\n3\n",
        "data: got 1 fields in line 6 of bad.csv, separated by commas, expected 2, as in the first line; fix: ",
    ),
    "categories": (
        "size,kind\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(9)),
        "data.target: got kind, which holds no numbers in bad.csv, separated by commas, expected a column of numbers; "
        "fix: set data.target to size",
    ),
    "empty": ("", "data: got bad.csv, which is empty, expected a line of names and lines of numbers; fix: check"),
    "few": ("a,b\n1,2\n", "data: got 1 points in bad.csv, separated by commas, expected at least 3; fix: add more"),
    "three": (
        "a,b\n1,2\n3,4\n5,6\n",
        "data: got 3 points, expected at least 2 to learn from beside 2 that are held out",
    ),
    "one column": (
        "a\n1\n2\n3\n",
        "data: got 1 column in bad.csv, separated by commas, expected at least 2, inputs and a value; fix: add",
    ),
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


def test_a_table_with_everything_is_read_and_told(regard: Regard) -> None:
    """Semicolons, decimal commas, thousands, a date, categories, gaps, free text: as spreadsheets export them."""
    lines = ["Datum;Gewicht;Herkunft;Notiz;Preis"]
    for n in range(60):
        weight = "" if n == 7 else f"{1 + n / 10:.1f}".replace(".", ",")
        price = f"{1000 + 100 * n + 500 * (n % 3):,}".replace(",", ".") + ",50"
        lines.append(f"2024-01-{n % 28 + 1:02d};{weight};{('Rom', 'Oslo', 'Bonn')[n % 3]};text {n};{price} €")
    Path("auto.csv").write_text("\n".join(lines))
    done = regard("train", "regression", "auto.csv", "--folder", "run", "--stop.steps", 20)
    assert done.code == 0, done.errors
    for note in (
        "Datum: dates, left out",
        "Herkunft: text, used as 3 categories (Bonn, Oslo, Rom)",
        "Notiz: text with 60 different values, left out",
        "1 of 60 rows have no value in Gewicht: left out (data.missing=mean fills them in)",
        "squared error of Preis",
    ):
        assert note in done.output, done.output
    answer = json.loads(regard("predict", "run", "3,5", "Oslo", "--json").output)
    assert answer["inputs"] == {"Gewicht": 3.5, "Herkunft=Bonn": 0, "Herkunft=Oslo": 1, "Herkunft=Rom": 0}
    assert 1000 < answer["average"] < 9000
    refused = regard("predict", "run", "3,5", "Osl")
    assert refused.errors == "regard: Herkunft: got Osl, expected one of Bonn, Oslo, Rom; fix: write Oslo\n"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a\tb\n1\t2\n3\t4\n5\t6\n", [[1, 2], [3, 4], [5, 6]]),
        ('a,b\n"1,234",2\n"3,000",4\n5,6\n', [[1234, 2], [3000, 4], [5, 6]]),
        ("a;b\n1,234;2\n3,5;4\n5;6\n", [[1.234, 2], [3.5, 4], [5, 6]]),
        ("a|b\n1 000|2%\n3|4%\n5|6%\n", [[1000, 2], [3, 4], [5, 6]]),
        ("1  2\n3  4\n5 6\n", [[1, 2], [3, 4], [5, 6]]),
        ("\ufeffa,b\r\n1e3,-.5\r\n3,4\r\n5,6\r\n\r\n", [[1000, -0.5], [3, 4], [5, 6]]),
    ],
    ids=["tabs", "thousands", "decimal commas", "bars", "blanks", "windows"],
)
def test_numbers_of_any_country_and_separator(tmp_path: Path, text: str, rows: list[list[float]]) -> None:
    (tmp_path / "t.csv").write_text(text)
    found = read_points(tmp_path / "t.csv")
    assert np.column_stack([found.inputs, found.values]).tolist() == rows


def test_columns_are_chosen_left_out_and_filled(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c,y\n1,NA,3,4\n2,5,6,7\n3,7,1,\n4,9,2,8\n5,3,3,9\n")
    path = tmp_path / "t.csv"
    assert read_points(path, choice=ColumnChoice(without=("b",))).names == ("a", "c")
    assert read_points(path, "y", ColumnChoice(only=("c", "y"))).names == ("c",)
    filled = read_points(path, choice=ColumnChoice(missing="mean"))
    assert filled.inputs[:, 1].tolist() == [pytest.approx(17 / 3), 5, 9, 3]  # of the rows that have a y
    assert "1 of 5 rows have no y: left out" in filled.notes
    expected = r"column: got d, expected a column of t\.csv, separated by commas: a, b, c, y; fix: write "
    with pytest.raises(InputError, match=expected):
        read_points(path, choice=ColumnChoice(without=("d",)))
