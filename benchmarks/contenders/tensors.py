"""The same numbers for every contender."""

import torch
from torch import Tensor, nn


def draw_normal(*shape: int, seed: int) -> Tensor:
    """Draw standard normal numbers that depend on shape and seed alone; gradients may be asked of them."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).requires_grad_()


def draw_linear(inputs: int, outputs: int, *, seed: int) -> nn.Linear:
    """Draw a matrix that keeps the variance, without a bias."""
    made = nn.Linear(inputs, outputs, bias=False)
    with torch.no_grad():
        made.weight.copy_(draw_normal(outputs, inputs, seed=seed) * inputs**-0.5)
    return made


def collect_leaves(*parts: Tensor | nn.Module) -> tuple[Tensor, ...]:
    """Return the tensors and the parameters among them, each once."""
    found = [list(part.parameters()) if isinstance(part, nn.Module) else [part] for part in parts]
    return tuple({id(leaf): leaf for some in found for leaf in some if leaf.requires_grad}.values())
