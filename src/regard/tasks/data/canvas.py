"""Pictures at random places of a larger canvas, alone or among pieces of others (Mnih et al. 2014, §4.1)."""

import torch
from torch import Tensor

from regard.errors import wrong

PIECE = 8  # pixels in a row of a piece of clutter


def place_on_canvas(pictures: Tensor, side: int, clutter: int, seed: int) -> Tensor:
    """Return pictures on black canvases of this side, each with so many pieces of other pictures of the set.

    Where pixels meet, the brighter one is seen.
    """
    count, height, width = pictures.shape
    if side < max(height, width):
        raise wrong("data.canvas", side, f"at least {max(height, width)}, the side of the pictures", "use 60, or 0")
    generator = torch.Generator().manual_seed(seed)
    canvases = pictures.new_zeros(count, side, side)
    if min(height, width) >= PIECE:
        for _ in range(clutter):
            others = pictures[torch.randint(count, (count,), generator=generator)]
            add_at_random(canvases, cut_at_random(others, PIECE, generator), generator)
    add_at_random(canvases, pictures, generator)
    return canvases


def cut_at_random(pictures: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Return a square piece of each picture."""
    rows, columns = draw_corners(pictures.shape, (side, side), generator)
    each = torch.arange(len(pictures))[:, None, None]
    reach = torch.arange(side)
    return pictures[each, rows[:, None, None] + reach[:, None], columns[:, None, None] + reach]


def add_at_random(canvases: Tensor, pictures: Tensor, generator: torch.Generator) -> None:
    """Put each picture somewhere on its canvas."""
    height, width = pictures.shape[1:]
    rows, columns = draw_corners(canvases.shape, (height, width), generator)
    each = torch.arange(len(pictures))[:, None, None]
    place = each, rows[:, None, None] + torch.arange(height)[:, None], columns[:, None, None] + torch.arange(width)
    canvases[place] = torch.maximum(canvases[place], pictures)


def draw_corners(outer: torch.Size, inner: tuple[int, int], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return rows and columns at which something of the inner size lies within the outer one."""
    count, height, width = outer
    rows = torch.randint(height - inner[0] + 1, (count,), generator=generator)
    return rows, torch.randint(width - inner[1] + 1, (count,), generator=generator)
