"""The largest numbers of a configuration: a file can ask for a model, or data, of any size."""

from collections.abc import Mapping
from typing import Any

from regard.datasets.bounds import format_number, get_bound
from regard.errors import wrong

NUMBER = get_bound("run folder", "number")  # of all fields but those whose names end so
NUMBERS: Mapping[str, int] = {
    name: get_bound("run folder", name)
    for name in ("seed", "layers", "hops", "pixels", "rate", "window", "hop", "filters")
}
UNBOUNDED = "training."  # steps, minutes, rates: they take no memory


def check_number(name: str, value: Any) -> None:
    """Raise if the value of a field is a number so large that a model or data of that size cannot be meant."""
    if isinstance(value, list | tuple):
        for one in value:
            check_number(name, one)
    if not isinstance(value, int | float) or name.startswith(UNBOUNDED):
        return
    largest = next((largest for end, largest in NUMBERS.items() if name.endswith(end)), NUMBER)
    if not -largest <= value <= largest:
        raise wrong(name, format_number(value), f"at most {largest:,}", "use a smaller number")
