"""Sequences of vectors whose last is to be predicted: three rules, or a file of numbers."""

import warnings
from collections.abc import Callable
from pathlib import Path
from tokenize import TokenError
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from regard.datasets.cleaning import in_short
from regard.errors import wrong
from regard.tasks.data.points import table_of
from regard.tasks.data.reading import check_file

Array = NDArray[np.float64]
# What numpy raises at heads that it cannot read: they are lines of Python, and sizes of any length.
BAD_ARRAY = (ValueError, EOFError, OSError, SyntaxError, TokenError, TypeError, KeyError, OverflowError, MemoryError,
             RecursionError, BadZipFile)  # fmt: skip


class Sequences(NamedTuple):
    """Vectors `(items, length, size)`, of which the last is the target.

    `right` is the place that has to be looked at, where there is one (−1 where not); `floor` is the squared error
    that noise makes of the best prediction, where it is known; `shared` is how many vectors a sequence has in common
    with the next one.
    """

    vectors: Array
    right: NDArray[np.int64]
    floor: float | None = None
    shared: int = 0

    def parts(self) -> list[slice]:
        """The sequences for training, validation and tests: three fifths, one and one of the time.

        Sequences that reach over a border belong to no part: no vector of one part is in another.
        """
        moments = len(self.vectors) + self.shared
        cuts = [0, round(0.6 * moments), round(0.8 * moments), moments]
        return [slice(cuts[place], cuts[place + 1] - self.shared) for place in range(3)]


def linear(items: int, length: int, size: int, noise: float, seed: int) -> Sequences:
    r"""$x_{t+1} = A x_t + \epsilon$, with one matrix for all: a random one, shrunk until it does not explode."""
    random = np.random.default_rng([seed, 11])
    matrix = random.normal(size=(size, size))
    matrix *= 0.95 / np.abs(np.linalg.eigvals(matrix)).max()
    return moved(matrix, (items, length), noise, random)


def rotation(items: int, length: int, size: int, noise: float, seed: int) -> Sequences:
    r"""$x_{t+1} = R x_t + \epsilon$, with a rotation of each pair of coordinates by its own angle."""
    random = np.random.default_rng([seed, 12])
    matrix = np.zeros((size, size))
    for pair, angle in enumerate(random.uniform(0.8, 2.4, size // 2)):
        turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = turn
    return moved(matrix, (items, length), noise, random)


def moved(matrix: Array, shape: tuple[int, int], noise: float, random: np.random.Generator) -> Sequences:
    """Sequences that start anywhere and follow a matrix."""
    items, length = shape
    steps = [random.normal(size=(items, len(matrix)))]
    for _ in range(length - 1):
        steps.append(steps[-1] @ matrix.T + random.normal(0, noise, (items, len(matrix))))
    # The noise of the last step cannot be foreseen by anyone.
    return Sequences(np.stack(steps, axis=1), np.full(items, length - 2), noise**2)


def retrieval(items: int, length: int, size: int, noise: float, seed: int) -> Sequences:
    """Each vector is a name and a thing; the last but one repeats a name, and the last is that name with its thing.

    Names are corners of a cube, so that no two of a sequence are alike by chance.
    """
    random = np.random.default_rng([seed, 13])
    half, before = size // 2, length - 2
    if before > 2**half:
        fix = f"use a size of at least {2 * int(np.ceil(np.log2(before)))}"
        raise wrong("data.size", size, f"room for {before} different names", fix)
    corners = np.array([[1.0 if number >> bit & 1 else -1.0 for bit in range(half)] for number in range(2**half)])
    chosen = np.stack([random.permutation(len(corners))[:before] for _ in range(items)])
    vectors = np.zeros((items, length, size))
    vectors[:, :before, :half] = corners[chosen]
    vectors[:, :before, half:] = random.normal(size=(items, before, half))
    right, row = random.integers(0, before, items), np.arange(items)
    vectors[:, -2, :half] = vectors[row, right, :half]
    vectors[:, -1] = vectors[row, right] + random.normal(0, noise, (items, size))
    return Sequences(vectors, right, noise**2)


RULES: dict[str, Callable[[int, int, int, float, int], Sequences]] = {
    "retrieval": retrieval,
    "rotation": rotation,
    "linear": linear,
}


def from_file(path: Path, length: int) -> Sequences:
    """An array of sequences; or one long series, a row for each moment, cut into sequences that overlap."""
    found = table_of(path)[1] if path.suffix.lower() == ".csv" else read_npy(path)
    found, shared = found[:, None] if found.ndim == 1 else found, 0
    if found.ndim == 2:
        least, shared = max(5 * (length + 1), length + 9), length - 1
        if len(found) < least:
            expected = f"at least {least}, so that a fifth of them has sequences of {length}"
            raise wrong("data", f"{len(found)} rows in {path.name}", expected, "lower data.length, or add rows")
        found = np.stack([found[start : start + length] for start in range(len(found) - length + 1)])
    if found.ndim != 3 or found.shape[1] < 3 or len(found) < 10:
        expected = "(time, size), or (items, length, size) with at least 10 items of at least 3 vectors"
        raise wrong("data", f"an array of shape {found.shape} in {path.name}", expected, "reshape it")
    return Sequences(found, np.full(len(found), -1), shared=shared)


def read_npy(path: Path) -> Array:
    """Numbers of numpy's own format; never code."""
    check_file(path)
    try:
        # Mapped, not read: a head of some bytes may promise any number of them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that an old version of Python wrote it
            found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise wrong("data", f"no file {path}", "a rule, a .npy or a .csv file", "check the path") from None
    except BAD_ARRAY as error:
        raise wrong(
            "data", f"{path.name} ({in_short(error)})", "a .npy file of numbers", "save it with numpy.save"
        ) from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu" or not np.isfinite(found).all():
        raise wrong("data", f"{path.name} with other things", "finite numbers only", "clean it first")
    return found.astype(np.float64)
