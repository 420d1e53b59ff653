"""Numbers in words, the same on the screen and in the tables."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from benchmarks.results import CaseResult, Check, Entry, Unit


def format_number(value: float) -> str:
    """Return a number with three digits.

    >>> format_number(57.312), format_number(0.9712), format_number(1234.5)
    ('57.3', '0.971', '1,234')
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{2 - (value >= 10) + (value < 1)}f}"


def format_amount(value: float, unit: Unit) -> str:
    """Return seconds or megabytes, in the unit that suits them.

    >>> format_amount(0.00592, "s"), format_amount(8192, "MB")
    ('5.92 ms', '8,192 MB')
    """
    if unit == "MB":
        return f"{format_number(value)} MB"
    for scale, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{format_number(value / scale)} {name}"
    return f"{format_number(value / 1e-6)} µs"


def format_entry(entry: Entry, unit: Unit) -> str:
    """Return an entry's amount with its quartiles."""
    if entry.over:
        return f"over {format_amount(entry.median, unit)}"
    if entry.runs == 1:
        return format_amount(entry.median, unit)
    return f"{format_amount(entry.median, unit)} ({format_amount(entry.low, unit)} – {format_amount(entry.high, unit)})"


def format_ratio(check: Check) -> str:
    """Return the measured ratio with its quartiles.

    >>> format_ratio(Check("faster than Keras", 57.3, 55.1, 58.0, "least", 40.0))
    '57.3× (55.1 – 58.0)'
    """
    if check.unit == "s":
        return f"{format_amount(check.value, 's')} ({format_amount(check.low, 's')} – {format_amount(check.high, 's')})"
    unit = "×" if check.unit == "×" else " MB"
    return f"{format_number(check.value)}{unit} ({format_number(check.low)} – {format_number(check.high)})"


def format_bound(check: Check) -> str:
    """Return the bound.

    >>> format_bound(Check("megabytes", 180.0, 170.0, 190.0, "most", 250.0, "MB"))
    '≤ 250 MB'
    >>> format_bound(Check("for a frame", 0.02, 0.02, 0.02, "most", 1 / 30, "s"))
    '≤ 33.3 ms'
    """
    sign = "≥" if check.sense == "least" else "≤"
    if check.unit == "s":
        return f"{sign} {format_amount(check.bound, 's')}"
    return f"{sign} {check.bound:g}{'×' if check.unit == '×' else ' MB'}"


def format_check(check: Check) -> str:
    """Return the check in one line.

    >>> format_check(Check("faster than Keras", 57.3, 55.1, 58.0, "least", 40.0))
    '57.3× (55.1 – 58.0) faster than Keras, claimed ≥ 40×'
    """
    says = "" if check.unit == "MB" else f" {check.says}"
    return f"{format_ratio(check)}{says}, claimed {format_bound(check)}"


def format_relative(entry: Entry, case: CaseResult) -> str:
    """Return how many times ours it takes."""
    ours = case.entries[0].median
    sign = "over " if entry.over else ""
    return f"{sign}{format_number(entry.median / ours)}×" if ours else "–"


def format_spread(values: Sequence[float]) -> str:
    """Return the median of all seeds, and their range.

    >>> format_spread([3.0, 1.0, 2.5]), format_spread([100.0, 100.0])
    ('2.5 (1–3)', '100')
    """
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{median(values):.4g} ({low}–{high})"


def tabulate_rows(rows: Sequence[dict[str, Any]], localize: Callable[[str], str] = str) -> list[str]:
    """Return the lines of a table with a row for each variant and a column for each set; names are "variant; set".

    >>> rows = [{"name": f"a; {own}", "values": [1.0, 3.0]} for own in "xy"]
    >>> tabulate_rows(rows)
    ['| | x | y |', '|---|---|---|', '| a | 2 (1–3) | 2 (1–3) |']
    """
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        variant, _, own = row["name"].partition("; ")
        cells.setdefault(localize(variant), {})[localize(own)] = format_spread(row["values"])
    sets = list(next(iter(cells.values())))
    lines = [f"| | {' | '.join(sets)} |", "|---" * (len(sets) + 1) + "|"]
    return lines + [f"| {name} | {' | '.join(own.values())} |" for name, own in cells.items()]
