"""Points of metrics.jsonl: what is drawn and listed of each of its lines, whatever the file contains."""

from typing import Any

from regard.datasets.bounds import get_bound, parse_json

LINE = get_bound("run folder", "metrics line")  # bytes of a line that can be one of ours
NAMES = ("step", "epoch", "loss", "tokens", "seconds", "rate", "norm", "best")
METRICS = 40  # of a line, and characters of their names
LARGEST = 2**63  # of an integer: more digits are not ours, and no float


def parse_point(line: bytes) -> dict[str, Any] | None:
    """Return the numbers of a line; None if the line is not one of ours.

    >>> parse_point(b'{"event": "stepped", "step": 3, "loss": 1.5, "other": "x"}')
    {'step': 3, 'loss': 1.5}
    """
    try:
        values = parse_json(line) if 0 < len(line) <= LINE else None
    except ValueError:
        return None
    if not isinstance(values, dict) or not is_count(values.get("step")):
        return None
    point = {name: value for name, value in values.items() if name in NAMES and is_finite_number(value)}
    metrics = values.get("metrics")
    if isinstance(metrics, dict):
        some = list(metrics.items())[:METRICS]
        point["metrics"] = {name[:METRICS]: value for name, value in some if is_finite_number(value)}
    return point


def is_count(value: object) -> bool:
    """Return whether a value is a number of steps."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def is_finite_number(value: object) -> bool:
    """Return whether a value is a number that JSON can hold: a run that failed may have NaN and infinities."""
    if isinstance(value, int):
        return -LARGEST < value < LARGEST
    return isinstance(value, float) and value == value and abs(value) != float("inf")
