"""Points with a value each: the curve of the textbook, scikit-learn's diabetes, or any CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.errors import wrong
from regard.tasks.data.columns import (
    ColumnChoice,
    InputColumn,
    check_column,
    describe_columns,
    fill_missing,
    find_kind,
    parse_column,
)
from regard.tasks.data.csv_table import CsvTable, read_table

Array = NDArray[np.float64]
LEAST = 3  # points


class Points(NamedTuple):
    """Inputs with their names, and a value for each, with the name of what it measures.

    `columns` are those of a file, and `notes` say what was left out of it.
    """

    inputs: Array
    values: Array
    names: tuple[str, ...]
    target: str = "y"
    columns: tuple[InputColumn, ...] = ()
    notes: tuple[str, ...] = ()


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
    return Points(
        found.data.astype(np.float64), found.target.astype(np.float64), tuple(found.feature_names), "progression"
    )


def read_points(
    path: Path, target: str = "", choice: ColumnChoice | None = None, columns: Sequence[InputColumn] | None = None
) -> Points:
    """Read points from a CSV file, with the columns that another file had if these are given.

    The target is a column by name, or the last of those that are used.
    """
    table, choice = read_table(path), choice or ColumnChoice()
    names = choice.select(table)
    check_target(table, target, names)
    target = target or names[-1]
    found, notes = describe_columns(table, [name for name in names if name != target])
    if columns is not None:
        for column in columns:
            check_column(column.name, table)
        found, notes = list(columns), []
    if not found:
        got = f"1 column of use in {table.form}" if len(names) > 1 else f"1 column in {table.form}"
        raise wrong("data", got, "at least 2, inputs and a value", "add the missing column, or check the separator")
    values = parse_column(target, table.get_column(target), table)
    known = ~np.isnan(values)
    if not known.all():
        notes.append(f"{int((~known).sum()):,} of {len(known):,} rows have no {target}: left out")
    inputs = np.hstack([column.encode(table.get_column(column.name), table) for column in found])[known]
    labels = tuple(name for column in found for name in column.inputs)
    inputs, kept, more = fill_missing(inputs, labels, choice.missing)
    if len(inputs) < LEAST:
        raise wrong("data", f"{len(inputs)} points in {table.form}", f"at least {LEAST}", "add more")
    return Points(inputs, values[known][kept], labels, target, tuple(found), (*notes, *more))


def check_target(table: CsvTable, target: str, names: Sequence[str]) -> None:
    """Raise if the column to predict is not in the table, or does not hold numbers."""
    if target:
        check_column(target, table)
    name = target or names[-1]
    if find_kind(table.get_column(name)) != "number":
        usable = [other for other in table.names if find_kind(table.get_column(other)) == "number"]
        fix = f"set data.target to {' or '.join(usable)}" if usable else "use a table with a column of numbers"
        raise wrong("data.target", f"{name}, which holds no numbers in {table.form}", "a column of numbers", fix)
