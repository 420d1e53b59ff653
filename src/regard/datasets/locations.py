"""Find data: in the working folder, in REGARD_DATA, and in the cache that `regard data get` fills."""

import os
from pathlib import Path

from regard.datasets.files import PublishedDataset

REGARD_DATA = "REGARD_DATA"


def get_data_home() -> Path:
    """Return the folder that downloads go to: the one that REGARD_DATA names, or one in the user's cache."""
    named = os.environ.get(REGARD_DATA)
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "regard"


def list_data_roots() -> list[Path]:
    """Return the folders in which a relative path is searched, in order."""
    return list(dict.fromkeys([Path(), Path("data"), get_data_home()]))


def is_path(word: str) -> bool:
    """Return whether a word is the path of something that exists; False for what cannot be a path at all."""
    try:
        return Path(word).exists()
    except (OSError, ValueError):
        return False


def find_data(path: Path) -> Path | None:
    """Return a file or folder as it is named, or in one of the roots, also with `.gz`; None if there is none."""
    zipped = path.parent / f"{path.name}.gz"
    for root in list_data_roots():
        for candidate in (root / path, root / zipped):
            if candidate.exists() and not is_incomplete(candidate):
                return candidate
    return None


def find_cached_folder(dataset: PublishedDataset) -> Path | None:
    """Return the first folder that has something of this data set."""
    folders = [root / dataset.name for root in list_data_roots()]
    return next((path for path in folders if path.is_dir() and any(path.iterdir()) and not is_incomplete(path)), None)


def is_incomplete(folder: Path) -> bool:
    """Return whether a folder has only the hidden parts of files whose download has not ended."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return bool(names) and all(name.startswith(".") for name in names)
