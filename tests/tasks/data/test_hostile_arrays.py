"""Arrays that hold more than they should: one sentence, and no memory for what they promise."""

import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from regard.datasets.bounds import get_bound
from regard.errors import InputError
from regard.tasks.data.sequences import read_sequences
from regard.tasks.reading.vectors import read_vectors

MOST = 2**24  # bytes


def write_head(path: Path, shape: tuple[int, ...], size: int) -> None:
    """Write the head of an array, and holes for `size` bytes behind it."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    os.truncate(path, path.stat().st_size + size)


def test_a_series_of_holes_is_not_read(tmp_path: Path) -> None:
    size = get_bound("array", "bytes") + 8
    write_head(tmp_path / "holes.npy", (size // 8, 1), size)
    tracemalloc.start()
    try:
        with pytest.raises(
            InputError, match=r"data: got holes.npy of 1,\d+,\d+,\d+ bytes, expected at most 1,073,741,824"
        ):
            read_sequences(tmp_path / "holes.npy", 4)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


def test_vectors_that_unpack_to_too_much_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.tasks.reading.vectors.VECTORS", 2**20)
    np.savez_compressed(tmp_path / "bomb.npz", words=np.array(b"a\nb"), vectors=np.zeros((2, 2**23), np.float32))
    assert (tmp_path / "bomb.npz").stat().st_size < 2**18
    tracemalloc.start()
    try:
        with pytest.raises(
            InputError, match=r"vectors: got bomb.npz \(67,\d+,\d+ bytes unpacked, at most 1,048,576 are"
        ):
            read_vectors(tmp_path / "bomb.npz")
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


def test_an_array_that_promises_any_number_is_one_sentence(tmp_path: Path) -> None:
    write_head(tmp_path / "vectors.npy", (2**50, 2), 8)
    with zipfile.ZipFile(tmp_path / "liar.npz", "w") as archive:
        archive.write(tmp_path / "vectors.npy", "vectors.npy")
        np.save(tmp_path / "words.npy", np.array(b"a\nb"))
        archive.write(tmp_path / "words.npy", "words.npy")
    with pytest.raises(InputError, match=r"vectors: got liar.npz \("):
        read_vectors(tmp_path / "liar.npz")
