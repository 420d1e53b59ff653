"""Data sets of others: which are known, where they are looked for, how they are fetched. Nothing here needs torch."""

from regard.datasets.fetching import FetchError, Patience, fetch
from regard.datasets.files import Dataset, File, Unpacking
from regard.datasets.having import get, where
from regard.datasets.known import DATASETS, KNOWN
from regard.datasets.places import REGARD_DATA, find, home, roots

__all__ = [
    "DATASETS",
    "KNOWN",
    "REGARD_DATA",
    "Dataset",
    "FetchError",
    "File",
    "Patience",
    "Unpacking",
    "fetch",
    "find",
    "get",
    "home",
    "roots",
    "where",
]
