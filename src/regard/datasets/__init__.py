"""Data sets of others: which are known, where they are looked for, how they are fetched. Nothing here needs torch."""

from regard.datasets.fetching import DownloadError, RetryPolicy, download_file
from regard.datasets.files import Dataset, File, Extraction
from regard.datasets.having import download_dataset, find_cached_folder
from regard.datasets.known import DATASETS, DATASETS_BY_NAME
from regard.datasets.places import REGARD_DATA, find_data, get_data_home, list_data_roots

__all__ = [
    "DATASETS",
    "DATASETS_BY_NAME",
    "REGARD_DATA",
    "Dataset",
    "DownloadError",
    "File",
    "RetryPolicy",
    "Extraction",
    "download_file",
    "find_data",
    "download_dataset",
    "get_data_home",
    "list_data_roots",
    "find_cached_folder",
]
