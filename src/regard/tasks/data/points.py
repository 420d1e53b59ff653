"""Points with a value each: the curve of the textbook, scikit-learn's diabetes, or any CSV."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.datasets.text import decode_text, shorten
from regard.errors import wrong
from regard.tasks.data.text_files import check_plain_file, read_decompressed

Array = NDArray[np.float64]


class Points(NamedTuple):
    """Inputs with their names, and a value for each."""

    inputs: Array
    values: Array
    names: tuple[str, ...]


def evaluate_curve(x: Array) -> Array:
    """Return the textbook's curve: $2 sin x + x^{0.8}$."""
    y: Array = 2 * np.sin(x) + x**0.8
    return y


def sample_curve(count: int, noise: float, seed: int) -> Points:
    """Return noisy points of the curve at random inputs from 0 to 5."""
    random = np.random.default_rng([seed, 2])
    x = np.sort(random.uniform(0, 5, count))
    return Points(x[:, None], evaluate_curve(x) + random.normal(0, noise, count), ("x",))


def load_diabetes_points() -> Points:
    """Return ten measurements of 442 patients, and how their disease progressed in a year (Efron et al. 2004)."""
    from sklearn.datasets import load_diabetes

    found = load_diabetes(scaled=False)
    return Points(found.data.astype(np.float64), found.target.astype(np.float64), tuple(found.feature_names))


def read_points(path: Path, target: str) -> Points:
    """Read a line of names, then a line of numbers for each point. The target is a column by name, or the last."""
    names, rows = read_csv(path)
    if target and target not in names:
        raise wrong("data.target", target, f"a column of {path.name}: {', '.join(names)}", f"write {names[-1]}")
    if len(names) < 2:
        raise wrong("data", f"1 column in {path.name}", "at least 2, inputs and a value", "add the missing column")
    column = names.index(target) if target else len(names) - 1
    inputs = tuple(name for name in names if name != names[column])
    return Points(np.delete(rows, column, axis=1), rows[:, column], inputs)


def read_csv(path: Path) -> tuple[list[str], Array]:
    """Return the names and the numbers of a CSV file; columns are numbered if the first line has no names."""
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
    names = lines[0] if headed else [f"column {number}" for number in range(1, len(lines[0]) + 1)]
    rows = [parse_numbers(line, number, len(names), path) for number, line in enumerate(lines, 1) if number > headed]
    if len(rows) < 3:
        raise wrong("data", f"{len(rows)} points in {path.name}", "at least 3", "add more")
    return names, np.array(rows)


def parse_numbers(line: list[str], number: int, width: int, path: Path) -> list[float]:
    """Return the numbers of a line; raise if it has other fields."""
    if len(line) != width:
        got = f"{len(line)} fields in line {number} of {path.name}"
        raise wrong("data", got, f"{width}, as in the first line", "complete it or leave it out")
    for field in line:
        if not is_number(field):
            got = f"{shorten(repr(field))} in line {number} of {path.name}"
            raise wrong("data", got, "a number", "write a number, or leave the line out")
    return [float(field) for field in line]


def is_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
