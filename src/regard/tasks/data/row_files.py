"""Rows in files of a folder: written one block after another, then mapped into memory or read when they are needed."""

import os
import weakref
from pathlib import Path
from typing import Any

import numpy

from regard.tasks.data.rows import Array, Rows


class RowWriter:
    """Takes rows in blocks, to a file `NAME.bin` and its offsets `NAME.npy`, or without a place to memory."""

    def __init__(self, dtype: str, place: Path | None = None) -> None:
        self.dtype, self.place = numpy.dtype(dtype), place
        self.lengths: list[Array] = []
        self.blocks: list[Array] = []
        self.file = None if place is None else place.with_suffix(".bin").open("wb")

    def append(self, values: Array, lengths: Array) -> None:
        """Take rows that lie one behind the other."""
        self.lengths.append(lengths.astype(numpy.int32))
        if self.file is None:
            self.blocks.append(values)
        else:
            self.file.write(values.astype(self.dtype, copy=False).tobytes())

    def finish(self) -> Rows:
        """Return all rows; if they are in files, these are whole and on the disk."""
        lengths = numpy.concatenate([numpy.zeros(1, dtype=numpy.int64), *self.lengths])
        offsets = numpy.cumsum(lengths, dtype=numpy.int64)
        if self.file is None or self.place is None:
            return Rows(numpy.concatenate([numpy.zeros(0, dtype=self.dtype), *self.blocks]), offsets)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        save_array(self.place.with_suffix(".npy"), offsets)
        return map_rows(self.place, str(self.dtype))

    def close(self) -> None:
        """Close the file if something went wrong before the end."""
        if self.file is not None:
            self.file.close()


class FileBytes:
    """The bytes of a file, read when they are asked for: mapped ones would count as memory of this process."""

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.handle)

    def __getitem__(self, part: slice) -> Array:
        start, stop = int(part.start), int(part.stop)
        return numpy.frombuffer(os.pread(self.handle, stop - start, start), dtype=numpy.uint8)


def map_rows(place: Path, dtype: str) -> Rows:
    """Return the rows of `NAME.bin`, mapped into memory."""
    path = place.with_suffix(".bin")
    # Every slice of a memmap is one too, which takes longer to make than the slice; an empty file cannot be mapped.
    values = numpy.asarray(numpy.memmap(path, dtype=dtype, mode="r")) if path.stat().st_size else numpy.zeros(0, dtype)
    return Rows(values, load_array(place.with_suffix(".npy")))


def open_rows(place: Path, chosen: Array | None = None) -> Rows:
    """Return the rows of bytes of `NAME.bin`, which are read when they are needed."""
    return Rows(FileBytes(place.with_suffix(".bin")), load_array(place.with_suffix(".npy")), chosen)


def save_array(path: Path, values: Array) -> None:
    """Write an array to a new file, and force it to the disk."""
    with path.open("wb") as file:
        numpy.save(file, values, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def load_array(path: Path) -> Any:
    """Return an array that is mapped into memory."""
    return numpy.asarray(numpy.load(path, mmap_mode="r", allow_pickle=False))
