"""Points with a value each: the curve of the textbook, scikit-learn's diabetes, or any CSV."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.datasets.text import decode_text, shorten
from regard.errors import wrong
from regard.tasks.data.text_files import check_plain_file, read_decompressed

Array = NDArray[np.float64]


class Points(NamedTuple):
    """Inputs and values; `truth`, where it is known, is what the values would be without noise."""

    inputs: Array
    values: Array
    names: tuple[str, ...]
    truth: Any = None


def evaluate_curve(x: Array) -> Array:
    """The textbook's curve: $2 sin x + x^{0.8}$."""
    y: Array = 2 * np.sin(x) + x**0.8
    return y


def sample_curve(count: int, noise: float, seed: int) -> Points:
    """So many points of the curve at random places from 0 to 5."""
    random = np.random.default_rng([seed, 2])
    x = np.sort(random.uniform(0, 5, count))
    return Points(x[:, None], evaluate_curve(x) + random.normal(0, noise, count), ("x",), evaluate_curve)


def load_diabetes_points() -> Points:
    """442 patients, ten measurements each, and how the disease went on in a year (Efron et al. 2004)."""
    from sklearn.datasets import load_diabetes

    found = load_diabetes(scaled=False)
    return Points(found.data.astype(np.float64), found.target.astype(np.float64), tuple(found.feature_names))


def read_points(path: Path, target: str) -> Points:
    """A file with a line of names, then one of numbers for each point. The target is a column by name, or the last."""
    names, rows = read_csv(path)
    if target and target not in names:
        raise wrong("data.target", target, f"a column of {path.name}: {', '.join(names)}", f"write {names[-1]}")
    if len(names) < 2:
        raise wrong("data", f"1 column in {path.name}", "at least 2, inputs and a value", "add the missing column")
    column = names.index(target) if target else len(names) - 1
    inputs = tuple(name for name in names if name != names[column])
    return Points(np.delete(rows, column, axis=1), rows[:, column], inputs)


def read_csv(path: Path) -> tuple[list[str], Array]:
    """The names and the numbers of a CSV file; names are made up where the first line has none."""
    if not path.is_file():
        check_plain_file(path)
        raise wrong("data", f"no file {path}", "a CSV file", "check the path")
    try:
        lines = [line for line in csv.reader(decode_text(read_decompressed(path), path.name).splitlines()) if line]
    except csv.Error as error:
        raise wrong("data", f"{path.name} ({shorten(error)})", "a CSV file", "export it as CSV") from None
    if not lines:
        raise wrong("data", f"{path.name}, which is empty", "a line of names and lines of numbers", "check the file")
    headed = not all(map(is_number, lines[0]))
    names = lines[0] if headed else [f"column {place + 1}" for place in range(len(lines[0]))]
    rows = [parse_numbers(line, number, len(names), path) for number, line in enumerate(lines, 1) if number > headed]
    if len(rows) < 3:
        raise wrong("data", f"{len(rows)} points in {path.name}", "at least 3", "add more")
    return names, np.array(rows)


def parse_numbers(line: list[str], number: int, width: int, path: Path) -> list[float]:
    """One line of numbers, or a sentence about what it is instead."""
    if len(line) != width:
        got = f"{len(line)} fields in line {number} of {path.name}"
        raise wrong("data", got, f"{width}, as in the first line", "complete it or leave it out")
    for field in line:
        if not is_number(field):
            got = f"{shorten(repr(field))} in line {number} of {path.name}"
            raise wrong("data", got, "a number", "write a number, or leave the line out")
    return [float(field) for field in line]


def is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
