"""Blocks of a table of pairs, and when two tables differ: what claims are tried on."""

import itertools

import torch

from regard.algebra.catalog import Sizes
from regard.algebra.shapes import Tensor
from regard.compute.verification import VALUE

Range = tuple[int, int]
ALLOWED_SHARE = 0.7  # share of the pairs that are allowed


def list_ranges(count: int) -> list[Range]:
    """Return some ranges of indices: the first and last alone, halves, and one in the middle.

    >>> list_ranges(7)
    [(0, 1), (0, 3), (2, 5), (3, 7), (6, 7)]
    """
    half = count // 2
    found = {(0, 1), (0, half), (count // 3, count - count // 3), (half, count), (count - 1, count)}
    return sorted((start, stop) for start, stop in found if start < stop)


def list_blocks(queries: int, keys: int) -> list[tuple[Range, Range]]:
    """Return some blocks of a table."""
    return list(itertools.product(list_ranges(queries), list_ranges(keys)))


def draw_pairs(sizes: Sizes) -> Tensor:
    """Return random pairs, with a first row that is empty."""
    generator = torch.Generator().manual_seed(4)
    allowed = torch.rand(sizes.queries, sizes.keys, generator=generator) < ALLOWED_SHARE
    allowed[0] = False
    return allowed


def slice_block(table: Tensor, rows: Range, columns: Range) -> Tensor:
    """Return a block of a table."""
    return table[..., rows[0] : rows[1], columns[0] : columns[1]]


def expand_table(table: Tensor, rows: int, columns: int) -> Tensor:
    """Return a table with the axes of queries and keys written out."""
    return table.expand(*table.shape[:-2], rows, columns)


def describe_block(rows: Range, columns: Range) -> str:
    """Return a block in words."""
    return f"rows {rows[0]} … {rows[1] - 1} and columns {columns[0]} … {columns[1] - 1}"


def differ(found: Tensor, true: Tensor) -> bool:
    """Return whether two tables differ by more than rounding; two that are infinite at the same pair do not."""
    if found.shape != true.shape or not true.numel():
        return found.shape != true.shape
    gap = torch.where(found == true, 0.0, found - true).abs()
    return not bool((gap <= VALUE * true.abs().nan_to_num(1.0, 1.0).max().clamp_min(1.0)).all())
