"""Which items of a folder without splits are held out: by a hash of their names, the same on every machine."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

Name = TypeVar("Name", bound=object)


def assign_parts(names: Sequence[Name]) -> dict[Name, str]:
    """Return the part of each name: a tenth for validation, a tenth for the test, and at least one of each.

    >>> list(assign_parts(["a", "b", "c"]).values())
    ['test', 'train', 'validation']
    """
    order = sorted(names, key=lambda name: hashlib.blake2b(str(name).encode()).digest())
    share = max(1, len(names) // 10)
    parts = dict.fromkeys(order[:share], "test") | dict.fromkeys(order[share : 2 * share], "validation")
    return {name: parts.get(name, "train") for name in names}


def is_same_source(data: str | None, own: str) -> bool:
    """Return whether these are the data of the run: of those only the held-out parts may be measured on.

    >>> is_same_source(None, "scenes"), is_same_source("scenes", "scenes"), is_same_source("scenes-zh", "scenes")
    (True, True, False)
    """
    return data is None or data == own or (Path(data).exists() and Path(data).resolve() == Path(own))
