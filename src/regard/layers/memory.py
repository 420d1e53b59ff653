"""Projected keys and values, and which of them are not padding."""

import math
from dataclasses import dataclass, field, replace

import torch

from regard.algebra.masks import Full, Lengths, Mask, Table
from regard.algebra.masks.base import as_mask
from regard.algebra.shapes import Float, Int, Integer, Keys, Tensor, Values, broadcasts, check_floats, describe
from regard.errors import wrong, wrong_kind
from regard.layers.appendable import AppendableTensor

FULL = Full()


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Projected keys and values, and which of them are not padding.

    Bahdanau's projected keys, the cache of cross-attention and the cache of self-attention are this one thing. It is
    passed in and out, never kept in a layer. `mask` is the same for every query (padding); what differs from query to
    query is given with the query. `positions`, `(*batch, keys)`, are those that rotary keys were rotated to, if they
    are not the indices of the keys: sequences that are padded continue at different positions.

    >>> step = Memory(torch.ones(2, 1, 3), torch.ones(2, 1, 5))
    >>> step.append(step).length
    2
    """

    key: Keys
    value: Values
    mask: Mask = None  # type: ignore[assignment]  # FULL: a compiler cannot trace an object as a default
    positions: Integer[Tensor, "*#batch key"] | None = None
    # Keys and values with free space behind them, if more were appended before.
    _growing: tuple[AppendableTensor, AppendableTensor] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.mask is None:
            object.__setattr__(self, "mask", FULL)
        if not as_mask(self.mask).columnwise:
            expected, fix = "a mask that is the same for every query", "give it with the query"
            raise wrong("memory.mask", type(self.mask).__name__, expected, fix)

    @property
    def length(self) -> int:
        """How many keys."""
        return self.key.shape[-2]

    @property
    def next_position(self) -> int | Integer[Tensor, "*#batch"]:
        """The position after the last key that is not padding: one for all, or one for each if some are padded."""
        if (type(self.mask) is Full and self.positions is None) or not self.length:
            return self.length
        device = self.key.device
        real = self.mask.table(1, self.length, device=device).squeeze(-2)
        behind = (torch.arange(self.length, device=device) if self.positions is None else self.positions) + 1
        return torch.where(real, behind, 0).amax(-1)

    @property
    def ends_unpadded(self) -> bool:
        """Whether no sequence is padded at its end."""
        behind = self.next_position
        if not isinstance(behind, Tensor):
            return True
        return torch.compiler.is_compiling() or bool((behind == self.length).all())

    def append(self, later: "Memory") -> "Memory":
        """Return this memory, then the later one.

        Without gradients, keys and values are written behind those that are there, so that a step costs what is new.
        """
        if type(self.mask) is Full and type(later.mask) is Full:
            mask: Mask = FULL
        else:
            mask = Table(_join_masks(self.mask, self.length, later.mask, later.length, self.key.device))
        growing = self._growing or (AppendableTensor.from_vectors(self.key), AppendableTensor.from_vectors(self.value))
        grown = growing[0].append(later.key), growing[1].append(later.value)
        longer = Memory(grown[0].view(), grown[1].view(), mask, _join_positions(self, later))
        object.__setattr__(longer, "_growing", grown)
        return longer

    def select(self, index: Int[Tensor, " chosen"]) -> "Memory":
        """Return some samples of the batch, in any order, perhaps repeated: what beam search does at each step."""
        return self._take(index)

    def take_first(self, count: int) -> "Memory":
        """Return the first samples of the batch, without a copy."""
        return self._take(slice(count))

    def _take(self, samples: Tensor | slice) -> "Memory":
        mask, positions = self.mask, self.positions
        if type(mask) is Lengths and isinstance(samples, slice):  # stays a mask that kernels know
            mask = Lengths(mask.lengths[samples])
        elif type(mask) is not Full:
            cells = mask.table(1, self.length, device=self.key.device)
            mask = Table(cells[samples] if cells.dim() > 2 else cells)
        own = positions if positions is None or positions.dim() < 2 else positions[samples]
        return Memory(self.key[samples], self.value[samples], mask, own)

    def add_to_keys(self, features: Float[Tensor, "*#lead key dim"]) -> "Memory":
        """Return the memory with location features or coverage added to its keys."""
        return replace(self, key=self.key + features)


def check_sequence(name: str, sequence: object) -> None:
    """Raise unless this is a sequence of vectors, or a batch of such."""
    check_floats(name, sequence)
    if isinstance(sequence, Tensor) and sequence.dim() < 2:
        fix = "add the missing axis with tensor[None]"
        raise wrong(name, describe(sequence), "at least (length, width)", fix)


def check_memory(memory: object) -> None:
    """Raise unless this is a memory: the raw source of keys and values is not."""
    if not isinstance(memory, Memory):
        fix = "write layer(x, layer.remember(source))"
        raise wrong_kind("memory", describe(memory), "a Memory, which holds projected keys and values", fix)


def zero_padding(source: Float[Tensor, "*lead key width"], mask: Mask) -> Float[Tensor, "*lead key width"]:
    """Return the source with zeros at padding: a matrix times NaN is NaN, and so is its gradient."""
    check_sequence("source", source)
    if type(mask) is Full:
        return source
    keys = source.shape[-2]
    as_mask(mask).check(tuple(source.shape[:-2]), 1, keys)
    real = mask.table(1, keys, device=source.device).squeeze(-2)
    return torch.where(real[..., None], source, 0.0)


def zero_harmful_padding(source: Float[Tensor, "*lead key width"], mask: Mask) -> Float[Tensor, "*lead key width"]:
    """Return the source, with zeros at padding if something in it is not finite. For attention under the same mask.

    To check is one pass on the CPU; a device that would have to wait for the answer writes the zeros at once.
    """
    check_sequence("source", source)
    if type(mask) is Full:
        return source
    if _is_finite(source):
        as_mask(mask).check(tuple(source.shape[:-2]), 1, source.shape[-2])
        return source
    return zero_padding(source, mask)


def _is_tracing() -> bool:
    """Return whether tensors have no values to check: under torch.compile and torch.func."""
    mapped: bool = torch._C._are_functorch_transforms_active()
    return mapped or torch.compiler.is_compiling()


def _is_finite(source: Tensor) -> bool:
    """Return whether the sum of all squares can be read at no cost and is finite, so that the norm of every row is."""
    if source.device.type != "cpu" or _is_tracing():
        return False
    wide = torch.float32 if source.dtype in (torch.float16, torch.bfloat16) else None
    return math.isfinite(torch.linalg.vector_norm(source.detach(), dtype=wide).item())


def zero_hidden(sequence: Float[Tensor, "*lead key width"], mask: Mask) -> Float[Tensor, "*lead key width"]:
    """Return the sequence, with zeros at what the mask of a call hides from all queries if something is not finite.

    Like `zero_harmful_padding`, for a mask that may differ by query and by head.
    """
    check_sequence("source", sequence)
    if type(as_mask(mask)) is Full or _is_finite(sequence):
        return sequence
    visible, batch = mask.find_visible_keys(sequence.shape[-2], sequence.device), sequence.dim() - 2
    if visible is not None and visible.dim() > batch + 1:  # behind the axes of the batch is that of heads
        visible = visible.any(-2)
    if visible is None or not broadcasts(tuple(visible.shape), tuple(sequence.shape[:-1])):
        return sequence  # what does not fit, the check of the call says
    return torch.where(visible[..., None], sequence, 0.0)


def combine_masks(first: Mask, second: Mask) -> Mask:
    """Return a mask of what both allow; nothing is computed if one allows everything."""
    if type(as_mask(second)) is Full:
        return first
    return second if type(first) is Full else first & second


def _join_masks(first: Mask, own: int, second: Mask, later: int, device: torch.device) -> Tensor:
    left, right = first.table(1, own, device=device), second.table(1, later, device=device)
    lead = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return torch.cat([left.expand(*lead, 1, own), right.expand(*lead, 1, later)], dim=-1)


def _join_positions(first: Memory, later: Memory) -> Tensor | None:
    if first.positions is None and later.positions is None:
        return None
    if later.positions is None and not first.ends_unpadded:
        expected = "keys that go on at the positions of this memory, which is padded"
        raise wrong("later", "keys turned to one position for all", expected, "remember(…, start=memory.next_position)")
    count, device = first.length, first.key.device
    left = torch.arange(count, device=device) if first.positions is None else first.positions
    right = torch.arange(count, count + later.length, device=device) if later.positions is None else later.positions
    lead = torch.broadcast_shapes(left.shape[:-1], right.shape[:-1])
    return torch.cat([left.expand(*lead, -1), right.expand(*lead, -1)], dim=-1)
