"""What scores, biases, normalizers and aggregates have in common: a key for the plan, tensors, settings by head."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

import torch
from torch import nn

from regard.algebra.shapes import Tensor, broadcasts, describe
from regard.errors import wrong, wrong_kind

AnyModule = TypeVar("AnyModule", bound=nn.Module)


def has_new_definition(kind: type, definition: str) -> bool:
    """Return whether a class writes a definition that one of its parents has already written."""
    if definition not in vars(kind):
        return False
    inherited = [vars(parent)[definition] for parent in kind.__mro__[1:] if definition in vars(parent)]
    # nn.Module.forward only raises that there is none.
    return any(
        not getattr(method, "__isabstractmethod__", False) and method is not nn.Module.forward for method in inherited
    )


def drop_claims(kind: type, claims: Mapping[str, object]) -> None:
    """Replace the claims that a class inherits by these defaults, except the claims that it makes itself.

    The fast form of a parent computes the parent's definition, so a class with its own definition must not use it.
    """
    for name, default in claims.items():
        if name not in vars(kind):
            setattr(kind, name, default)


class Term(nn.Module):
    """A part of the algebra. It holds parameters and settings, and keeps nothing of a call."""

    head_blind: ClassVar[bool] = False
    """Whether it treats every head alike, apart from its tensors: heads may then be on two axes, by groups."""

    per_head_settings: tuple[str, ...] = ()
    """The attributes that are one number, or a tensor with one number for each head: what `hold_setting` was given."""

    @property
    def plan_key(self) -> Hashable:
        """What the plan may depend on: no tensors and no values. The type itself, because two may share a name."""
        return (type(self),)

    def per_head_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the name and the tensor of each setting that differs by head, also those of its parts."""
        for part in self.modules() if self._modules else (self,):
            if isinstance(part, Term):
                yield from part.own_head_tensors()

    def own_head_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield its own settings that differ by head: tensors whose last axis is that of heads."""
        for name in self.per_head_settings:
            setting = getattr(self, name)
            if isinstance(setting, Tensor) and setting.dim():
                yield name, setting

    def hold_setting(self, name: str, setting: float | Tensor, *, fix_if_not_positive: str = "") -> None:
        """Keep a setting that is one number or one for each head; raise unless it is (positive, if there is a fix)."""
        self.hold(name, check_setting(name, setting, fix_if_not_positive=fix_if_not_positive))
        self.per_head_settings = (*self.per_head_settings, name)

    def hold(self, name: str, setting: float | Tensor) -> None:
        """Keep a number or tensor: a tensor then follows `.to()` and is in the `state_dict`, as parameter or buffer.

        A tensor that was computed from others, and has a gradient to them, belongs to one call and stays an attribute.
        """
        fixed = isinstance(setting, Tensor) and not isinstance(setting, nn.Parameter) and not setting.requires_grad
        if fixed:
            self.register_buffer(name, setting)  # type: ignore[arg-type]
        else:
            setattr(self, name, setting)

    def tensors(self) -> tuple[Tensor, ...]:
        """Return every tensor that the result depends on, parameters or not, in a fixed order."""
        held = (*self.parameters(), *self.buffers(), *find_attributes(self))
        tensors = [tensor for tensor in held if tensor.is_floating_point()]
        return tuple({id(tensor): tensor for tensor in tensors}.values())

    @property
    def wants_grad(self) -> bool:
        """Whether a gradient may flow to it."""
        return any(tensor.requires_grad for tensor in self.tensors())


def find_attributes(part: nn.Module) -> list[Tensor]:
    """Return the tensors that are plain attributes of a module or of its parts, neither parameters nor buffers."""
    return [value for module in part.modules() for value in vars(module).values() if isinstance(value, Tensor)]


def find_numbers(part: nn.Module) -> list[int | float]:
    """Return the numbers that are attributes of a module or of its parts, but for its mode of training."""
    modules = part.modules() if part._modules else (part,)
    attributes = (item for module in modules for item in vars(module).items())
    return [value for name, value in attributes if type(value) in (bool, int, float) and name != "training"]


def cast_module(part: AnyModule, dtype: torch.dtype) -> AnyModule:
    """Return a module with its float tensors in this dtype; gradients still flow to the module's own tensors."""
    if not isinstance(part, nn.Module):  # the check of the arguments, which comes later, says so
        return part
    if not any(tensor.is_floating_point() for tensor in (*part.parameters(), *part.buffers(), *find_attributes(part))):
        return part
    twin = part.__class__.__new__(part.__class__)  # a compiler does not trace copy.copy
    state = {name: _cast(value, dtype) for name, value in vars(part).items()}
    state["_modules"] = {name: child and cast_module(child, dtype) for name, child in part._modules.items()}
    for kind in ("_parameters", "_buffers"):
        state[kind] = {name: _cast(value, dtype) for name, value in vars(part)[kind].items()}
    twin.__dict__.update(state)
    return twin


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def broadcast_per_head(setting: float | Tensor, like: Tensor | None = None) -> float | Tensor:
    """Return a number as it is, and one number for each head in a shape that broadcasts over (heads, query, key).

    What is computed of the setting alone, such as its inverse, has the digits of `like` only if that is given.
    """
    if not isinstance(setting, Tensor):
        return setting
    if like is not None and setting.dtype != like.dtype:
        setting = setting.to(torch.promote_types(setting.dtype, like.dtype))
    return setting[..., None, None] if setting.dim() else setting


def learn_setting(start: float, heads: int | None) -> nn.Parameter:
    """Return a setting that is trained: one number, or one for each head if heads are given."""
    return nn.Parameter(torch.full((heads,) if heads else (), start))


def check_setting(name: str, setting: float | Tensor, *, fix_if_not_positive: str = "") -> float | Tensor:
    """Return the setting; raise unless it is a number (positive, if there is a fix for that) or a float tensor."""
    expected = "a number, or a float tensor of one for each head"
    if isinstance(setting, Tensor) and not setting.is_floating_point():
        raise wrong_kind(name, describe(setting), expected, f"write {name}.float()")
    if not isinstance(setting, Tensor | int | float) or isinstance(setting, bool):
        raise wrong_kind(name, describe(setting), expected, "write 1.0, or torch.tensor([1.0, 2.0]) for two heads")
    if fix_if_not_positive and not isinstance(setting, Tensor) and not setting > 0:
        raise wrong(name, setting, "a number above 0", fix_if_not_positive)
    return setting


def check_heads(name: str, setting: Tensor, lead: tuple[int, ...]) -> None:
    """Raise unless a tensor has one number for each head, the last of the lead axes."""
    own = tuple(setting.shape)
    if not broadcasts(own, lead):
        heads = f"one number for each of {lead[-1]} heads" if lead else "one number, because there are no heads"
        fix = f"give a tensor of shape ({lead[-1]},), or one number" if lead else "give one number"
        raise wrong(name, f"shape {own}", heads, fix)
