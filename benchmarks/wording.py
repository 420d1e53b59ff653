"""Numbers in words, the same on the screen and in the tables."""

from benchmarks.results import CaseResult, Check, Entry, Unit


def number(value: float) -> str:
    """Three digits.

    >>> number(57.312), number(0.9712), number(1234.5)
    ('57.3', '0.971', '1,234')
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{2 - (value >= 10) + (value < 1)}f}"


def amount(value: float, unit: Unit) -> str:
    """Seconds or megabytes, in the unit that suits them.

    >>> amount(0.00592, "s"), amount(8192, "MB")
    ('5.92 ms', '8,192 MB')
    """
    if unit == "MB":
        return f"{number(value)} MB"
    for scale, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{number(value / scale)} {name}"
    return f"{number(value / 1e-6)} µs"


def measured(entry: Entry, unit: Unit) -> str:
    """An entry's amount with its quartiles."""
    if entry.over:
        return f"over {amount(entry.median, unit)}"
    if entry.runs == 1:
        return amount(entry.median, unit)
    return f"{amount(entry.median, unit)} ({amount(entry.low, unit)} – {amount(entry.high, unit)})"


def ratio(check: Check) -> str:
    """What came out, with its quartiles.

    >>> ratio(Check("faster than Keras", 57.3, 55.1, 58.0, "least", 40.0))
    '57.3× (55.1 – 58.0)'
    """
    if check.unit == "s":
        return f"{amount(check.value, 's')} ({amount(check.low, 's')} – {amount(check.high, 's')})"
    unit = "×" if check.unit == "×" else " MB"
    return f"{number(check.value)}{unit} ({number(check.low)} – {number(check.high)})"


def bound(check: Check) -> str:
    """What must come out.

    >>> bound(Check("megabytes", 180.0, 170.0, 190.0, "most", 250.0, "MB"))
    '≤ 250 MB'
    >>> bound(Check("for a frame", 0.02, 0.02, 0.02, "most", 1 / 30, "s"))
    '≤ 33.3 ms'
    """
    sign = "≥" if check.sense == "least" else "≤"
    if check.unit == "s":
        return f"{sign} {amount(check.bound, 's')}"
    return f"{sign} {check.bound:g}{'×' if check.unit == '×' else ' MB'}"


def outcome(check: Check) -> str:
    """The check in one line.

    >>> outcome(Check("faster than Keras", 57.3, 55.1, 58.0, "least", 40.0))
    '57.3× (55.1 – 58.0) faster than Keras, claimed ≥ 40×'
    """
    says = "" if check.unit == "MB" else f" {check.says}"
    return f"{ratio(check)}{says}, claimed {bound(check)}"


def relative(entry: Entry, case: CaseResult) -> str:
    """How many times ours it takes."""
    ours = case.entries[0].median
    sign = "over " if entry.over else ""
    return f"{sign}{number(entry.median / ours)}×" if ours else "–"
