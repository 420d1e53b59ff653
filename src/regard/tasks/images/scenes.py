"""Scenes drawn for the purpose: counted, placed, colored shapes.

A scene has one or two groups of like shapes, each on its side of the image. The sentences about them, in English and in
Chinese, are in `scene_language.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

CELL, ACROSS = 8, 4  # pixels of a cell, and cells of a side: a shape stands in one cell
PIXELS = CELL * ACROSS
COLORS = {
    "red": (214, 39, 40),
    "green": (44, 160, 44),
    "blue": (31, 97, 200),
    "yellow": (240, 200, 20),
    "purple": (140, 70, 180),
}
SHAPES = ("circle", "square", "triangle")
MOST = 3  # shapes of a group
SIDES = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
TINT, LIGHT = 12, (232, 245)  # how much a color varies, and how bright the ground is


class ShapeGroup(NamedTuple):
    """Like shapes on one side of a scene."""

    number: int
    color: str
    shape: str
    side: str


class Scene(NamedTuple):
    """A drawing, and what is in it."""

    image: np.ndarray  # (height, width, 3), bytes
    groups: tuple[ShapeGroup, ...]


def draw_scene(seed: Sequence[int]) -> Scene:
    """Return the scene of a seed: always the same.

    >>> draw_scene([1, 2]).groups == draw_scene([1, 2]).groups
    True
    """
    random = np.random.default_rng(seed)
    side = str(random.choice(list(SIDES)))
    groups = [draw_group(random, side)]
    if random.random() < 0.7:
        groups.append(draw_group(random, SIDES[side], other=groups[0]))
    return Scene(render_groups(groups, random), tuple(groups))


def draw_group(random: np.random.Generator, side: str, other: ShapeGroup | None = None) -> ShapeGroup:
    """Return a group that differs from the other in color or shape."""
    while True:
        count = int(random.integers(1, MOST + 1))
        found = ShapeGroup(count, str(random.choice(list(COLORS))), str(random.choice(SHAPES)), side)
        if other is None or (found.color, found.shape) != (other.color, other.shape):
            return found


def render_groups(groups: Sequence[ShapeGroup], random: np.random.Generator) -> np.ndarray:
    """Return the image: each shape in a cell of its own, a little moved, in a color that varies a little."""
    image = np.empty((PIXELS, PIXELS, 3), dtype=np.uint8)
    image[:] = random.integers(*LIGHT)
    for own in groups:
        cells = list_side_cells(own.side)
        for place in random.choice(len(cells), size=own.number, replace=False):
            tint = random.integers(-TINT, TINT + 1, size=3)
            color = np.clip(np.array(COLORS[own.color]) + tint, 0, 255).astype(np.uint8)
            row, column = cells[place]
            corner = row * CELL + int(random.integers(0, 2)), column * CELL + int(random.integers(0, 2))
            image[corner[0] : corner[0] + CELL - 1, corner[1] : corner[1] + CELL - 1][draw_stencil(own.shape)] = color
    return image


def list_side_cells(side: str) -> list[tuple[int, int]]:
    """Return the cells along one side, by row and column. Each corner belongs to one side only.

    >>> list_side_cells("top"), list_side_cells("right")
    ([(0, 1), (0, 2), (0, 3)], [(1, 3), (2, 3), (3, 3)])
    """
    early, late, last = range(ACROSS - 1), range(1, ACROSS), ACROSS - 1
    return {
        "left": [(row, 0) for row in early],
        "right": [(row, last) for row in late],
        "top": [(0, column) for column in late],
        "bottom": [(last, column) for column in early],
    }[side]


def draw_stencil(shape: str) -> np.ndarray:
    """Return which pixels of a cell a shape covers.

    >>> [int(draw_stencil(shape).sum()) for shape in SHAPES]
    [37, 49, 25]
    """
    size = CELL - 1
    row, column = np.mgrid[:size, :size]
    middle = (size - 1) / 2
    if shape == "circle":
        return np.asarray((row - middle) ** 2 + (column - middle) ** 2 <= (size / 2) ** 2)
    if shape == "triangle":
        return np.asarray(np.abs(column - middle) <= row / 2)
    return np.ones((size, size), dtype=bool)
