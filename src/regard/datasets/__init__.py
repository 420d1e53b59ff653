"""Data sets of other authors: which are known, where they are searched, how they are downloaded. Needs no torch."""

from regard.datasets.download import download_dataset
from regard.datasets.files import Dataset, Extraction, File
from regard.datasets.locations import REGARD_DATA, find_cached_folder, find_data, get_data_home, list_data_roots
from regard.datasets.registry import DATASETS, DATASETS_BY_NAME
from regard.datasets.transfer import DownloadError, RetryPolicy, download_file

__all__ = [
    "DATASETS",
    "DATASETS_BY_NAME",
    "REGARD_DATA",
    "Dataset",
    "DownloadError",
    "Extraction",
    "File",
    "RetryPolicy",
    "download_dataset",
    "download_file",
    "find_cached_folder",
    "find_data",
    "get_data_home",
    "list_data_roots",
]
