"""Feature maps for linear attention."""

import functools
from collections.abc import Callable, Hashable, Iterable
from types import CellType, FunctionType

import torch
from torch import nn

from regard.algebra.entries import list_as
from regard.algebra.scores.base import DotForm, DotScore, KeyGrowth
from regard.algebra.shapes import Keys, Queries, Scores, Tensor


def elu_plus_one(x: Tensor) -> Tensor:
    r"""Return $\phi(x) = \mathrm{elu}(x) + 1$ (Katharopoulos et al. 2020, eq. 7)."""
    return x.relu() + x.clamp_max(0).exp()  # elu(x) + 1 would lose the digits of a small exponential


@list_as("features", aliases="linear elu katharopoulos kernel-features 线性 特征")
class FeatureDot(DotScore):
    r"""The inner product of positive features of query and key.

    $$ s_{ij} = \phi(q_i)^\top \phi(k_j) $$

    with $\phi$ = `map`. Divided by the row total this is linear attention (Katharopoulos et al. 2020, eq. 4).

    Lowers to: a dot product of features; with the row total, two products reassociated, linear in the length.

    >>> FeatureDot()(torch.zeros(1, 2), torch.zeros(3, 2))
    tensor([[2., 2., 2.]])
    """

    head_blind = True

    def __init__(self, map: Callable[[Tensor], Tensor] = elu_plus_one) -> None:
        super().__init__()
        self.map = map

    @property
    def plan_key(self) -> Hashable:
        return type(self), self.key_growth

    @property
    def key_growth(self) -> KeyGrowth:
        return "none" if self.map is elu_plus_one else "any"

    def compute_features(self, x: Tensor) -> Tensor:
        """Return the features. A function that holds tensors can be computed in their dtype alone."""
        held = () if torch.compiler.is_compiling() else (t.dtype for t in find_held_tensors(self.map))
        own = next((dtype for dtype in held if dtype.is_floating_point), x.dtype)
        return self.map(x) if own == x.dtype else self.map(x.to(own)).to(x.dtype)

    def forward(self, query: Queries, key: Keys) -> Scores:
        return torch.einsum("...id,...jd->...ij", self.compute_features(query), self.compute_features(key))

    def dot_form(self, query: Queries, key: Keys) -> DotForm:
        return DotForm(self.compute_features(query), self.compute_features(key))

    def tensors(self) -> tuple[Tensor, ...]:
        known = (*super().tensors(), *find_held_tensors(self.map))
        return tuple({id(tensor): tensor for tensor in known if tensor.is_floating_point()}.values())


def find_held_tensors(function: object) -> list[Tensor]:
    """Return the tensors that a function holds: by closure, default, global name, or its object."""
    if function is elu_plus_one or isinstance(function, nn.Module):  # those of a module are its parameters
        return []
    if isinstance(function, functools.partial):
        return [*find_held_tensors(function.func), *_list_tensors([*function.args, *function.keywords.values()])]
    function, owner = getattr(function, "__func__", function), getattr(function, "__self__", None)
    if not isinstance(function, FunctionType):
        return _list_tensors(getattr(function, "__dict__", {}).values())
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]  # an empty one has none
    named = (function.__globals__.get(name) for name in function.__code__.co_names)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return _list_tensors([*cells, *named, *defaults, *getattr(owner, "__dict__", {}).values()])


def _list_tensors(things: Iterable[object]) -> list[Tensor]:
    """Return the tensors among these, and those of modules."""
    found: list[Tensor] = []
    for thing in things:
        if isinstance(thing, Tensor):
            found.append(thing)
        elif isinstance(thing, nn.Module):
            found += [*thing.parameters(), *thing.buffers()]
    return found
