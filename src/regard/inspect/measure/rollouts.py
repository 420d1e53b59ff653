"""Attention rollout: how the attention of several layers combines."""

from collections.abc import Sequence

import torch

from regard.algebra.shapes import Float, Tensor
from regard.errors import wrong
from regard.inspect.recording import AttentionMap, Recording


def rollout(layers: Recording | Sequence[AttentionMap], *, residual: float = 0.5) -> Float[Tensor, "query key"]:
    r"""Return how much of each input position is in each output position of a stack of self-attentions.

    $$ R_l = \bar A_l R_{l-1}, \qquad \bar A_l = \rho I + (1 - \rho)\, \tfrac{1}{H} \sum_h W_{lh} $$

    with $R_0 = I$, rows scaled to sum to 1, and $\rho$ = `residual`, the share of the residual connection. Layers
    are in their order, first to last. Abnar & Zuidema 2020, §3, where $\rho$ is ½. Needs weights or tiles.

    >>> rollout(Recording.from_weights({"0": [[0.0, 1.0], [0.0, 1.0]], "1": [[1.0, 0.0], [0.0, 1.0]]}))
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    if not 0 <= residual <= 1:
        raise wrong("residual", residual, "0 … 1", "give the share of what passes by")
    stack = list(layers.values()) if isinstance(layers, Recording) else list(layers)
    if not stack:
        raise wrong("layers", "none", "at least one", "give the self-attentions of a model, first to last")
    size = stack[0].keys
    result = torch.eye(size)
    for number, layer in enumerate(stack):
        if (layer.queries, layer.keys) != (size, size):
            got = f"{layer.queries} × {layer.keys} in layer {number}"
            raise wrong("layers", got, f"{size} × {size} in all", "choose the self-attentions of one stack by a glob")
        mixed = residual * torch.eye(size) + (1 - residual) * layer.tile().float()
        result = mixed / mixed.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny) @ result
    return result
