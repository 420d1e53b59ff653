"""One vector for a whole source, where an encoder has none of its own."""

import torch

from regard.algebra.shapes import Float, Int, Tensor


def mean_pool(
    states: Float[Tensor, "batch source width"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch width"]:
    """The mean over the real positions; zeros where there are none.

    >>> mean_pool(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2]))
    tensor([[2.]])
    """
    real = torch.arange(states.shape[1], device=lengths.device) < lengths[:, None]
    total = torch.where(real[..., None], states, 0.0).sum(1)
    return total / lengths.clamp_min(1)[:, None].to(states.dtype)
