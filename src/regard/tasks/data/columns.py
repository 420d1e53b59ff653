"""The columns of a table as numbers: categories as ones and zeros, missing values dropped or filled, dates left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.datasets.text import shorten
from regard.errors import find_nearest, wrong
from regard.tasks.data.csv_table import CsvTable, choose_decimal, is_date, is_missing, is_number, parse_number

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
MissingRule = Literal["drop", "mean", "last"]
MOST_CATEGORIES = 20
Kind = Literal["number", "date", "category", "text", "empty"]


class InputColumn(NamedTuple):
    """A column that is used: of numbers, or of texts that are one of its `choices`."""

    name: str
    choices: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the numbers that it becomes: one for each choice."""
        return tuple(f"{self.name}={choice}" for choice in self.choices) or (self.name,)

    def encode(self, fields: Sequence[str], table: CsvTable) -> Array:
        """Return the numbers of some fields, a row each; NaN if a value is missing."""
        if not self.choices:
            return parse_column(self.name, fields, table)[:, None]
        missing = np.array([is_missing(field) for field in fields])
        rows = np.array([[float(field == choice) for choice in self.choices] for field in fields])
        return np.where(missing[:, None], np.nan, rows)


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Which columns of a table are used, and what is done about missing values."""

    only: tuple[str, ...] = ()  # columns; none: all
    without: tuple[str, ...] = ()  # columns to leave out
    missing: MissingRule = "drop"  # rows without a value, or fill in the mean of the column or its last value

    def select(self, table: CsvTable) -> list[str]:
        """Return the names of the columns that are used; raise if one is not in the table."""
        for name in (*self.only, *self.without):
            check_column(name, table)
        return [name for name in table.names if (not self.only or name in self.only) and name not in self.without]


def check_column(name: str, table: CsvTable) -> None:
    """Raise if a column is not in a table."""
    if name not in table.names:
        expected = f"a column of {table.form}: {', '.join(table.names)}"
        raise wrong("column", name, expected, f"write {find_nearest(name, table.names)}")


def find_kind(fields: Sequence[str]) -> Kind:
    """Return what a column holds: what most of its values are."""
    known = [field for field in fields if not is_missing(field)]
    if not known:
        return "empty"
    if all(map(is_date, known)):
        return "date"
    if 2 * sum(map(is_number, known)) > len(known):
        return "number"
    count = len(set(known))
    return "category" if count <= min(MOST_CATEGORIES, max(2, len(known) // 2)) else "text"


def describe_columns(table: CsvTable, names: Sequence[str]) -> tuple[list[InputColumn], list[str]]:
    """Return the columns that can be used, and notes on the others."""
    columns, notes = [], []
    for name in names:
        fields = table.get_column(name)
        match find_kind(fields):
            case "number":
                columns.append(InputColumn(name))
            case "category":
                known = sorted({field for field in fields if not is_missing(field)})
                columns.append(InputColumn(name, tuple(known)))
                notes.append(f"{name}: text, used as {len(known)} categories ({shorten(', '.join(known))})")
            case "date":
                notes.append(f"{name}: dates, left out")
            case "empty":
                notes.append(f"{name}: without a value, left out")
            case "text":
                notes.append(f"{name}: text with {len(set(fields)):,} different values, left out")
    return columns, notes


def parse_column(name: str, fields: Sequence[str], table: CsvTable) -> Array:
    """Return the numbers of a column; NaN if a value is missing; raise if one is something else."""
    decimal = choose_decimal(table, fields)
    numbers = [np.nan if is_missing(field) else parse_number(field, decimal) for field in fields]
    for number, field, line in zip(numbers, fields, table.lines, strict=True):
        if number is None:
            got = f"{shorten(repr(field))} in column {name}, line {line} of {table.form}"
            raise wrong("data", got, "a number", "write a number or nothing, or leave the column out")
    return np.array(numbers, dtype=np.float64)


def fill_missing(values: Array, names: Sequence[str], rule: MissingRule) -> tuple[Array, Flags, list[str]]:
    """Return the values without gaps, which rows are kept, and a note on what was done."""
    gaps = np.isnan(values)
    rows, columns = gaps.any(axis=1), set(np.flatnonzero(gaps.any(axis=0)).tolist())
    everything = np.ones(len(values), dtype=bool)
    if not rows.sum():
        return values, everything, []
    where = dict.fromkeys(name.partition("=")[0] for place, name in enumerate(names) if place in columns)
    text = f"{int(rows.sum()):,} of {len(values):,} rows have no value in {', '.join(where)}"
    if rule == "drop":
        return values[~rows], np.logical_not(rows), [f"{text}: left out (data.missing=mean fills them in)"]
    if rule == "mean":
        return np.where(gaps, np.nanmean(values, axis=0), values), everything, [f"{text}: filled in with the mean"]
    return fill_forward(values), everything, [f"{text}: filled in with the value before"]


def fill_forward(values: Array) -> Array:
    """Return the values with each gap filled by what stands before it in its column; the first by what follows.

    >>> fill_forward(np.array([[np.nan], [1.0], [np.nan]])).ravel().tolist()
    [1.0, 1.0, 1.0]
    """
    filled = values.copy()
    for row in range(1, len(filled)):
        filled[row] = np.where(np.isnan(filled[row]), filled[row - 1], filled[row])
    for row in range(len(filled) - 2, -1, -1):
        filled[row] = np.where(np.isnan(filled[row]), filled[row + 1], filled[row])
    return filled
