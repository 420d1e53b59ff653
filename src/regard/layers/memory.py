"""What can be read: keys and values, and which of them are real."""

import math
from dataclasses import dataclass, replace

import torch

from regard.errors import wrong
from regard.masks import Full, Lengths, Mask, Table, as_mask
from regard.shapes import Float, Int, Keys, Tensor, Values

FULL = Full()


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Keys and values that are ready to be read, and which of them are real.

    Bahdanau's projected keys, the cache of cross-attention and the cache of a decoder that reads its own past are
    this one thing. It is passed, never stashed. `mask` is the same for every query (padding); what differs from
    query to query is given with the query.

    >>> step = Memory(torch.ones(2, 1, 3), torch.ones(2, 1, 5))
    >>> step.append(step).length
    2
    """

    key: Keys
    value: Values
    mask: Mask = FULL

    def __post_init__(self) -> None:
        if not as_mask(self.mask).columnwise:
            expected, fix = "a mask that is the same for every query", "give it with the query"
            raise wrong("memory.mask", type(self.mask).__name__, expected, fix)

    @property
    def length(self) -> int:
        """How many keys."""
        return self.key.shape[-2]

    def append(self, later: "Memory") -> "Memory":
        """This memory, then the later one."""
        if isinstance(self.mask, Full) and isinstance(later.mask, Full):
            mask: Mask = FULL
        else:
            mask = Table(_joined(self.mask, self.length, later.mask, later.length, self.key.device))
        key, value = torch.cat([self.key, later.key], dim=-2), torch.cat([self.value, later.value], dim=-2)
        return Memory(key, value, mask)

    def select(self, index: Int[Tensor, " chosen"]) -> "Memory":
        """Some samples of the batch, in another order, some perhaps twice: what beam search does at each step."""
        mask = self.mask
        if not isinstance(mask, Full):
            cells = mask.table(1, self.length, device=self.key.device)
            mask = Table(cells[index] if cells.dim() > 2 else cells)
        return Memory(self.key[index], self.value[index], mask)

    def first(self, count: int) -> "Memory":
        """The first samples of the batch, without a copy."""
        mask = self.mask
        if isinstance(mask, Lengths):
            mask = Lengths(mask.lengths[:count])
        elif not isinstance(mask, Full):
            cells = mask.table(1, self.length, device=self.key.device)
            mask = Table(cells[:count] if cells.dim() > 2 else cells)
        return Memory(self.key[:count], self.value[:count], mask)

    def plus(self, features: Float[Tensor, "*#lead key dim"]) -> "Memory":
        """The same with something added to its keys (location features, coverage)."""
        return replace(self, key=self.key + features)


def cleaned(source: Float[Tensor, "*lead key width"], mask: Mask) -> Float[Tensor, "*lead key width"]:
    """The source with zeros where the mask says that nothing is: a matrix times NaN is NaN, and so is its gradient."""
    if isinstance(mask, Full):
        return source
    keys = source.shape[-2]
    as_mask(mask).check(tuple(source.shape[:-2]), 1, keys)
    real = mask.table(1, keys, device=source.device).squeeze(-2)
    return torch.where(real[..., None], source, 0.0)


def harmless(source: Float[Tensor, "*lead key width"], mask: Mask) -> Float[Tensor, "*lead key width"]:
    """The source, cleaned only where something in it could do harm. It is for those who read it under the same mask.

    Looking is one pass on the CPU; a device that would have to wait for the answer cleans at once.
    """
    if isinstance(mask, Full):
        return source
    if source.device.type == "cpu" and not _traced() and _moderate(source):
        as_mask(mask).check(tuple(source.shape[:-2]), 1, source.shape[-2])
        return source
    return cleaned(source, mask)


def _traced() -> bool:
    """Whether a tensor has no number to look at: under torch.compile and torch.func."""
    mapped: bool = torch._C._are_functorch_transforms_active()
    return mapped or torch.compiler.is_compiling()


def _moderate(source: Tensor) -> bool:
    """Whether not even the sum of all squares overflows, so that no norm of a row does."""
    wide = torch.float32 if source.dtype in (torch.float16, torch.bfloat16) else None
    return math.isfinite(torch.linalg.vector_norm(source.detach(), dtype=wide).item())


def both(first: Mask, second: Mask) -> Mask:
    """Allowed by both, with nothing to compute where one allows everything."""
    if isinstance(as_mask(second), Full):
        return first
    return second if isinstance(first, Full) else first & second


def _joined(first: Mask, own: int, second: Mask, later: int, device: torch.device) -> Tensor:
    left, right = first.table(1, own, device=device), second.table(1, later, device=device)
    lead = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return torch.cat([left.expand(*lead, 1, own), right.expand(*lead, 1, later)], dim=-1)
