"""Tables in CSV files as people have them: any separator, numbers of any country, values that are missing."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from regard.datasets.text import decode_text, shorten
from regard.errors import wrong
from regard.tasks.data.text_files import check_plain_file, read_decompressed

SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "blanks"}  # commas may be decimal
MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-", "--", ".", "无", "缺失"}
MOSTLY = 0.8  # of the lines have as many fields as a separator must give
SIGNS = "%€$£¥ \u00a0\u202f"  # around a number
DATE = re.compile(
    r"\d{4}[-/.年]\d{1,2}(?:[-/.月](?:\d{1,2}日?)?)?(?:[ T]\d{1,2}:\d{2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?: .*)?"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?"
)
DecimalMark = Literal[".", ","]
DECIMAL_MARKS: tuple[DecimalMark, ...] = (".", ",")


class CsvTable(NamedTuple):
    """The fields of a file by row, with the names of the columns and the number of each row's line."""

    path: Path
    names: list[str]
    rows: list[list[str]]
    lines: list[int]
    separator: str

    @property
    def form(self) -> str:
        """The file and how it was read, for messages."""
        return f"{self.path.name}, separated by {SEPARATORS[self.separator]}"

    def get_column(self, name: str) -> list[str]:
        """Return the fields of a column."""
        place = self.names.index(name)
        return [row[place] for row in self.rows]


def read_table(path: Path) -> CsvTable:
    """Read a CSV file; columns are numbered if the first line has no names."""
    if not path.is_file():
        check_plain_file(path)
        raise wrong("data", f"no file {path}", "a CSV file", "check the path")
    text = decode_text(read_decompressed(path), path.name).removeprefix("\ufeff").splitlines()
    try:
        separator = choose_separator(text)
        found = [(number, row) for number, row in enumerate(split_fields(text, separator), 1) if any(row)]
    except csv.Error as error:
        expected = f"a CSV file with at most {csv.field_size_limit():,} characters in a field"
        fix = "close its quotation marks, or export it as CSV"
        raise wrong("data", f"{path.name} ({shorten(error)})", expected, fix) from None
    if not found:
        raise wrong("data", f"{path.name}, which is empty", "a line of names and lines of numbers", "check the file")
    first = found[0][1]
    headed = not all(is_number(field) for field in first if not is_missing(field))
    names = name_columns(first) if headed else [f"column {number}" for number in range(1, len(first) + 1)]
    body = found[1:] if headed else found
    table = CsvTable(path, names, [row for _, row in body], [number for number, _ in body], separator)
    for number, row in body:
        if len(row) != len(names):
            got = f"{len(row)} fields in line {number} of {table.form}"
            raise wrong("data", got, f"{len(names)}, as in the first line", "complete it or leave it out")
    return table


def name_columns(fields: Sequence[str]) -> list[str]:
    """Return the names of the columns; those without one, or with one that is taken, are numbered."""
    taken: Counter[str] = Counter()
    names = []
    for number, field in enumerate(fields, 1):
        name = field or f"column {number}"
        taken[name] += 1
        names.append(name if taken[name] == 1 else f"{name} ({number})")
    return names


def choose_separator(lines: Sequence[str]) -> str:
    """Return the separator that gives most lines equally many fields, of several the first.

    >>> choose_separator(["a;b", "1,5;2,5"]), choose_separator(["a,b", "1,2"]), choose_separator(["a", "1"])
    (';', ',', ',')
    """
    for separator in SEPARATORS:
        try:
            widths = Counter(len(row) for row in split_fields(lines, separator) if any(row))
        except csv.Error:
            continue  # a long line without this separator is a field that is too long
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        if width > 1 and count >= (1 if separator == " " else MOSTLY) * widths.total():
            return separator
    return ","


def split_fields(lines: Iterable[str], separator: str) -> list[list[str]]:
    """Return the fields of each line, without blanks around them; several blanks separate as one does."""
    if separator == " ":
        return [line.split() for line in lines]
    return [[field.strip() for field in row] for row in csv.reader(lines, delimiter=separator, skipinitialspace=True)]


def is_missing(field: str) -> bool:
    """Return whether a field says that there is no value."""
    return field.lower() in MISSING


def is_number(field: str) -> bool:
    """Return whether a field is a number in any country."""
    return parse_number(field, ".") is not None or parse_number(field, ",") is not None


def is_date(field: str) -> bool:
    """Return whether a field is a date or a time."""
    return DATE.fullmatch(field) is not None


def parse_number(field: str, decimal: DecimalMark) -> float | None:
    """Return a number with a decimal mark of this kind, and groups of three digits or not; none if it is no number.

    >>> parse_number("1,234.5", "."), parse_number("1.234,5", ","), parse_number("12 %", "."), parse_number("1,5", ".")
    (1234.5, 1234.5, 12.0, None)
    """
    text = field.strip(SIGNS)
    if re.fullmatch(compile_pattern(decimal), text, flags=re.ASCII) is None:
        return None
    number = float(re.sub(rf"[{'.' if decimal == ',' else ','}' \u00a0\u202f’]", "", text).replace(decimal, "."))
    return number if abs(number) < float("inf") else None


def compile_pattern(decimal: DecimalMark) -> str:
    """Return the pattern of a number."""
    group = r"[.' \u00a0\u202f’]" if decimal == "," else r"[,' \u00a0\u202f’]"
    mark = re.escape(decimal)
    digits = rf"(?:\d{{1,3}}(?:{group}\d{{3}})+|\d+)"
    return rf"[+-]?(?:{digits}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?"


def choose_decimal(table: CsvTable, fields: Iterable[str]) -> DecimalMark:
    """Return the decimal mark of a column: the one with which more fields are numbers.

    If both read all of them, as 1,234 and 1.234 are read, commas are decimal in files with semicolons only, as they
    are exported where decimals have commas.
    """
    known = [field for field in fields if not is_missing(field)]
    points, commas = (sum(parse_number(field, mark) is not None for field in known) for mark in DECIMAL_MARKS)
    if points != commas:
        return "." if points > commas else ","
    grouped = any("," in field for field in known)
    return "," if grouped and table.separator == ";" else "."
