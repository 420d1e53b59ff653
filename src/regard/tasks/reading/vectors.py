"""Pretrained word vectors: GloVe, as its authors distribute it, or as arrays of numpy."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy
import torch

from regard.algebra.shapes import Float, Tensor
from regard.datasets.bounds import check_file, get_bound
from regard.datasets.text import shorten
from regard.errors import wrong
from regard.tasks.data.text_files import locate_data

VECTORS = get_bound("array", "vectors")


class WordVectors(NamedTuple):
    """Words, and a row of numbers for each."""

    words: list[str]
    table: Float[Tensor, "word width"]


def read_vectors(path: Path) -> WordVectors:
    """Return the vectors of a file: text with a word and its numbers in each line, or .npz with `words` and `vectors`.

    A folder may be given instead, if it has one such file.
    """
    file = find_only_file(locate_data(path))
    check_file("vectors", file, VECTORS)
    try:
        found = list(read_arrays(file) if file.suffix == ".npz" else read_text(file))
        return WordVectors([word for word, _ in found], torch.from_numpy(numpy.stack([row for _, row in found])))
    except (OSError, ValueError, KeyError, AttributeError, MemoryError, zipfile.BadZipFile, EOFError) as error:
        fix = "use a file of GloVe, such as glove.6B.100d.txt"
        raise wrong("vectors", f"{file.name} ({shorten(error)})", "a word and its numbers in each line", fix) from None


def find_only_file(place: Path) -> Path:
    """Return the file itself, or the only file of word vectors in a folder."""
    if not place.is_dir():
        return place
    files = sorted(path for path in place.iterdir() if path.suffix in (".npz", ".txt"))
    if len(files) != 1:
        raise wrong("vectors", f"{len(files)} files in {place}", "one .txt or .npz file", "name the file itself")
    return files[0]


def read_arrays(file: Path) -> Iterator[tuple[str, numpy.ndarray]]:
    """Yield words and vectors from a `.npz` file."""
    # Nothing that is pickled: it could run code.
    with numpy.load(file, allow_pickle=False) as arrays:
        unpacked = sum(member.file_size for member in arrays.zip.infolist())
        if unpacked > VECTORS:
            raise ValueError(f"{unpacked:,} bytes unpacked, at most {VECTORS:,} are read")
        words = arrays["words"].item().decode("utf-8").split("\n")
        yield from zip(words, arrays["vectors"].astype(numpy.float32), strict=True)


def read_text(file: Path) -> Iterator[tuple[str, numpy.ndarray]]:
    """Yield words and vectors from a text file, one word a line."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            word, _, numbers = line.rstrip("\n").partition(" ")
            yield word, numpy.array(numbers.split(" "), dtype=numpy.float32)
