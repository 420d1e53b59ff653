"""What scores, biases, normalizers and readings have in common: a name for the plan, and the tensors they read."""

from collections.abc import Hashable

from torch import nn

from regard.shapes import Tensor


class Term(nn.Module):
    """A part of the algebra. It holds parameters and settings, and nothing that a call leaves behind."""

    @property
    def key(self) -> Hashable:
        """What the plan may depend on: no tensor, no content. The type itself: two may share a name."""
        return (type(self),)

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor that a gradient may flow to, parameters or not, in a fixed order."""
        loose = [value for part in self.modules() for value in vars(part).values() if isinstance(value, Tensor)]
        found = [tensor for tensor in [*self.parameters(), *loose] if tensor.is_floating_point()]
        return tuple({id(tensor): tensor for tensor in found}.values())

    @property
    def wants_grad(self) -> bool:
        """Whether a gradient may flow to it."""
        return any(tensor.requires_grad for tensor in self.tensors())


def per_head(setting: float | Tensor) -> float | Tensor:
    """A number as it is; one number for each head, shaped to broadcast over (heads, query, key)."""
    return setting[..., None, None] if isinstance(setting, Tensor) and setting.dim() else setting
