"""Pictures moved a little at random: from few of them a model then learns more than where everything was."""

from math import pi
from typing import Literal

import torch
from torch.nn import functional as F

from regard.algebra.shapes import Float, Tensor


def jitter(
    pictures: Float[Tensor, "picture channel height width"], amount: float, around: Literal["zeros", "border"] = "zeros"
) -> Float[Tensor, "picture channel height width"]:
    """Return each picture turned, shifted and stretched a little, at random; `around` is what comes in from outside."""
    if not amount:
        return pictures
    count = len(pictures)
    draw = (2 * torch.rand(5, count, device=pictures.device) - 1) * amount
    turn, wide, high = draw[0] * pi / 2, 1 + draw[1], 1 + draw[2]
    rows = [turn.cos() * wide, -turn.sin() * high, 2 * draw[3], turn.sin() * wide, turn.cos() * high, 2 * draw[4]]
    theta = torch.stack(rows, dim=-1).view(count, 2, 3)
    grid = F.affine_grid(theta, [count, 1, *pictures.shape[2:]], align_corners=False)
    return F.grid_sample(pictures, grid, padding_mode=around, align_corners=False)
