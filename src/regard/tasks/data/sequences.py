"""Sequences of vectors whose last is to be predicted: three rules, or a file of numbers."""

import warnings
from collections.abc import Callable
from pathlib import Path
from tokenize import TokenError
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from regard.datasets.bounds import check_file, get_bound
from regard.datasets.text import shorten
from regard.errors import wrong
from regard.tasks.data.columns import ColumnChoice, describe_columns, fill_missing, parse_column
from regard.tasks.data.csv_table import read_table
from regard.tasks.data.text_files import check_plain_file

Array = NDArray[np.float64]
USUAL_LENGTH = 25  # vectors of a sequence of a long series
# What numpy raises at heads that it cannot read: they are lines of Python, and sizes of any length.
BAD_ARRAY = (ValueError, EOFError, OSError, SyntaxError, TokenError, TypeError, KeyError, OverflowError, MemoryError,
             RecursionError, BadZipFile)  # fmt: skip


class VectorSequences(NamedTuple):
    """Vectors `(items, length, size)`, of which the last is the target.

    `expected_position` is the position that has to be attended to (−1 if there is none); `floor` is the squared error
    that noise makes of the best prediction, if it is known; `shared` is how many vectors a sequence has in common with
    the next one; `names` are those of the numbers of a file, and `notes` say what was left out of it.
    """

    vectors: Array
    expected_position: NDArray[np.int64]
    floor: float | None = None
    shared: int = 0
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def parts(self) -> list[slice]:
        """Return the ranges of training, validation and test sequences: three fifths, one and one of the time.

        Sequences that reach over a border belong to no part: no vector of one part is in another.
        """
        moments = len(self.vectors) + self.shared
        cuts = [0, round(0.6 * moments), round(0.8 * moments), moments]
        return [slice(cuts[place], cuts[place + 1] - self.shared) for place in range(3)]


def generate_linear(items: int, length: int, size: int, noise: float, seed: int) -> VectorSequences:
    r"""Generate $x_{t+1} = A x_t + \epsilon$, with one random matrix for all, shrunk until it does not explode."""
    random = np.random.default_rng([seed, 11])
    matrix = random.normal(size=(size, size))
    matrix *= 0.95 / np.abs(np.linalg.eigvals(matrix)).max()
    return follow_matrix(matrix, (items, length), noise, random)


def generate_rotation(items: int, length: int, size: int, noise: float, seed: int) -> VectorSequences:
    r"""Generate $x_{t+1} = R x_t + \epsilon$, with a rotation of each pair of coordinates by its own angle."""
    random = np.random.default_rng([seed, 12])
    matrix = np.zeros((size, size))
    for pair, angle in enumerate(random.uniform(0.8, 2.4, size // 2)):
        turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = turn
    return follow_matrix(matrix, (items, length), noise, random)


def follow_matrix(matrix: Array, shape: tuple[int, int], noise: float, random: np.random.Generator) -> VectorSequences:
    """Return sequences that start anywhere, each vector the matrix times the one before, plus noise."""
    items, length = shape
    steps = [random.normal(size=(items, len(matrix)))]
    for _ in range(length - 1):
        steps.append(steps[-1] @ matrix.T + random.normal(0, noise, (items, len(matrix))))
    # Nobody can predict the noise of the last step.
    return VectorSequences(np.stack(steps, axis=1), np.full(items, length - 2), noise**2)


def generate_retrieval(items: int, length: int, size: int, noise: float, seed: int) -> VectorSequences:
    """Generate vectors of a name and a thing: the last but one repeats a name, the last has its thing too.

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
    return VectorSequences(vectors, right, noise**2)


RULES: dict[str, Callable[[int, int, int, float, int], VectorSequences]] = {
    "retrieval": generate_retrieval,
    "rotation": generate_rotation,
    "linear": generate_linear,
}


class Series(NamedTuple):
    """The numbers of a file, `(moments, size)` or whole sequences `(items, length, size)`, with their names."""

    values: Array
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_sequences(path: Path, length: int | None, choice: ColumnChoice | None = None) -> VectorSequences:
    """Read an array of sequences; or one long series, a row for each moment, as sequences that overlap."""
    series = read_series(path, choice)
    found, shared = series.values, 0
    if found.ndim == 2:
        length = choose_length(len(found)) if length is None else length
        least, shared = max(5 * (length + 1), length + 9), length - 1
        if len(found) < least:
            expected = f"at least {least}, so that a fifth of them has sequences of {length}"
            raise wrong("data", f"{len(found)} rows in {path.name}", expected, "lower data.length, or add rows")
        found = cut_windows(found, length)
    if found.ndim != 3 or found.shape[1] < 3 or len(found) < 10:
        expected = "(time, size), or (items, length, size) with at least 10 items of at least 3 vectors"
        raise wrong("data", f"an array of shape {found.shape} in {path.name}", expected, "reshape it")
    return VectorSequences(found, np.full(len(found), -1), None, shared, series.names, series.notes)


def cut_windows(values: Array, length: int) -> Array:
    """Return all sequences of neighbors of a series."""
    return np.stack([values[start : start + length] for start in range(len(values) - length + 1)])


def choose_length(rows: int) -> int:
    """Return the length of the sequences of a series: two dozen vectors to look at, or what the series has room for.

    >>> choose_length(500), choose_length(60), choose_length(20)
    (25, 11, 3)
    """
    return max(3, min(USUAL_LENGTH, rows // 5 - 1))


def read_series(path: Path, choice: ColumnChoice | None = None) -> Series:
    """Read the numbers of a CSV or .npy file, in its own units."""
    if path.suffix.lower() not in (".csv", ".tsv", ".txt"):
        found = read_npy(path)
        found = found[:, None] if found.ndim == 1 else found
        return Series(found, tuple(f"number {place}" for place in range(1, found.shape[-1] + 1)))
    table = read_table(path)
    columns, notes = describe_columns(table, (choice or ColumnChoice()).select(table))
    names = tuple(column.name for column in columns if not column.choices)
    if not names:
        raise wrong("data", f"no column of numbers in {table.form}", "at least one", "check the file and its separator")
    notes = [note for note in notes if " categories (" not in note]
    notes += [f"{column.name}: text, left out" for column in columns if column.choices]
    values = np.stack([parse_column(name, table.get_column(name), table) for name in names], axis=1)
    filled, _, more = fill_missing(values, names, "last")  # a row that is left out would shift time
    return Series(filled, names, (*notes, *more))


def read_npy(path: Path) -> Array:
    """Read an array of numbers in numpy's format; pickled code is refused."""
    check_plain_file(path)
    if path.is_file():
        check_file("data", path, get_bound("array", "bytes"), path.name)
    try:
        # Mapped, not read: a head of some bytes may promise any number of them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy warns that an old version of Python wrote it
            found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise wrong("data", f"no file {path}", "a rule, a .npy or a .csv file", "check the path") from None
    except BAD_ARRAY as error:
        raise wrong(
            "data", f"{path.name} ({shorten(error)})", "a .npy file of numbers", "save it with numpy.save"
        ) from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu" or not np.isfinite(found).all():
        raise wrong("data", f"{path.name} with other things", "finite numbers only", "clean it first")
    return found.astype(np.float64)
