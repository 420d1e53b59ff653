"""Where data is looked for: in the working folder, in REGARD_DATA, and where `regard data get` puts it."""

import os
from pathlib import Path

REGARD_DATA = "REGARD_DATA"


def get_data_home() -> Path:
    """Where data is put: the folder that REGARD_DATA names, or one of the user's cache."""
    named = os.environ.get(REGARD_DATA)
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "regard"


def list_data_roots() -> list[Path]:
    """The folders in which a relative path may lie, in the order in which they are tried."""
    return list(dict.fromkeys([Path(), Path("data"), get_data_home()]))


def find_data(path: Path) -> Path | None:
    """A file or folder as it is, or in one of the roots; `.gz` is tried too. A download that never came is none."""
    zipped = path.parent / f"{path.name}.gz"
    for root in list_data_roots():
        for candidate in (root / path, root / zipped):
            if candidate.exists() and not is_incomplete(candidate):
                return candidate
    return None


def is_incomplete(place: Path) -> bool:
    """Whether a folder has nothing but the hidden parts of files that are not yet whole."""
    names = [path.name for path in place.iterdir()] if place.is_dir() else []
    return bool(names) and all(name.startswith(".") for name in names)
