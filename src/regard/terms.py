"""What scores, biases, normalizers and readings have in common: a name for the plan, and the tensors they read."""

import copy
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import torch
from torch import nn

from regard.errors import wrong, wrong_kind
from regard.shapes import Tensor, describe, fits

AnyModule = TypeVar("AnyModule", bound=nn.Module)


def has_new_definition(kind: type, definition: str) -> bool:
    """Return whether a class writes a definition that one of its parents has already written."""
    if definition not in vars(kind):
        return False
    inherited = [vars(parent)[definition] for parent in kind.__mro__[1:] if definition in vars(parent)]
    return any(not getattr(method, "__isabstractmethod__", False) and method not in _NONE for method in inherited)


_NONE = (nn.Module.forward,)  # which only says that there is none


def drop_claims(kind: type, claims: Mapping[str, object]) -> None:
    """Replace what a class inherits as its fast form, unless it claims one itself.

    The fast form of a parent computes the parent's definition, so a class with a definition of its own must not run it.
    """
    for name, default in claims.items():
        if name not in vars(kind):
            setattr(kind, name, default)


class Term(nn.Module):
    """A part of the algebra. It holds parameters and settings, and nothing that a call leaves behind."""

    head_blind: ClassVar[bool] = False
    """Whether it surely treats every head alike, apart from its tensors: heads may then be on two axes, by groups."""

    by_head: ClassVar[tuple[str, ...]] = ()  # the attributes that are one number, or a tensor of one for each head

    @property
    def key(self) -> Hashable:
        """What the plan may depend on: no tensor, no content. The type itself: two may share a name."""
        return (type(self),)

    def settings(self) -> Iterator[tuple[str, Tensor]]:
        """The name and the tensor of each setting that differs by head, those of its parts too."""
        for part in self.modules() if self._modules else (self,):
            for name in part.by_head if isinstance(part, Term) else ():
                setting = getattr(part, name)
                if isinstance(setting, Tensor) and setting.dim():
                    yield name, setting

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor that a gradient may flow to, parameters or not, in a fixed order."""
        loose = [value for part in self.modules() for value in vars(part).values() if isinstance(value, Tensor)]
        found = [tensor for tensor in [*self.parameters(), *loose] if tensor.is_floating_point()]
        return tuple({id(tensor): tensor for tensor in found}.values())

    @property
    def wants_grad(self) -> bool:
        """Whether a gradient may flow to it."""
        return any(tensor.requires_grad for tensor in self.tensors())


def cast_module(part: AnyModule, dtype: torch.dtype) -> AnyModule:
    """Return a module with its float tensors in this dtype; gradients still flow to the module's own tensors."""
    if not isinstance(part, nn.Module):  # which is told of when it is checked
        return part
    loose = [value for module in part.modules() for value in vars(module).values() if isinstance(value, Tensor)]
    if not any(tensor.is_floating_point() for tensor in (*part.parameters(), *part.buffers(), *loose)):
        return part
    twin = copy.copy(part)
    state = {name: _cast(value, dtype) for name, value in vars(part).items()}
    state["_modules"] = {name: child and cast_module(child, dtype) for name, child in part._modules.items()}
    for kind in ("_parameters", "_buffers"):
        state[kind] = {name: _cast(value, dtype) for name, value in vars(part)[kind].items()}
    twin.__dict__.update(state)
    return twin


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def per_head(setting: float | Tensor) -> float | Tensor:
    """A number as it is; one number for each head, shaped to broadcast over (heads, query, key)."""
    return setting[..., None, None] if isinstance(setting, Tensor) and setting.dim() else setting


def check_setting(
    name: str, setting: object, expected: str = "a number, or a float tensor of one for each head"
) -> None:
    """Raise unless this is a number or a tensor of real numbers, which may be one for each head."""
    if isinstance(setting, Tensor) and not setting.is_floating_point():
        raise wrong_kind(name, describe(setting), expected, f"write {name}.float()")
    if not isinstance(setting, Tensor | int | float) or isinstance(setting, bool):
        raise wrong_kind(name, describe(setting), expected, "write 1.0, or torch.tensor([1.0, 2.0]) for two heads")


def check_heads(name: str, setting: Tensor, lead: tuple[int, ...]) -> None:
    """Raise where a tensor does not have one number for each head, the last of the lead axes."""
    own = tuple(setting.shape)
    padded = (1,) * (len(lead) - len(own)) + own
    if len(own) > len(lead) or not all(map(fits, padded, lead)):
        heads = f"one number for each of {lead[-1]} heads" if lead else "one number, because there are no heads"
        fix = f"give a tensor of shape ({lead[-1]},), or one number" if lead else "give one number"
        raise wrong(name, f"shape {own}", heads, fix)
