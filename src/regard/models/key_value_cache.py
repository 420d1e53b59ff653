"""A key–value cache that beam search does not have to reorder: a tree of tokens for each sentence.

Other caches hold a row for each hypothesis and copy it whenever beam search reorders them. Here the hypotheses of a
sentence share one list of slots, one for each token of any of them, and `visible` marks the slots of each hypothesis.
Reordering moves these marks and no key; a token that several hypotheses have in common is stored once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from regard.algebra.masks import Causal, Mask, Table
from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.models.selection import regroup

RESERVE = 16  # slots that are allocated in advance, at least
PRUNE_ABOVE = 64  # slots from which it is worth looking for unused ones


class _Buffer:
    """A tensor with free space at its end, shared by all that were appended to one beginning."""

    __slots__ = ("taken", "tensor")

    def __init__(self, tensor: Tensor, taken: int) -> None:
        self.tensor, self.taken = tensor, taken


@dataclass(frozen=True, slots=True, eq=False)
class AppendableTensor:
    """Vectors along the second-last axis that more can be appended to, without copying those that are there.

    Appending returns another value and leaves this one as it is: appending to the newest writes behind it, appending to
    an older one copies. With gradients, or in a graph, everything is copied.

    >>> one = AppendableTensor.from_vectors(torch.zeros(2, 1, 3))
    >>> left, right = one.append(torch.ones(2, 1, 3)), one.append(-torch.ones(2, 1, 3))
    >>> left.view()[0, 1], right.view()[0, 1]
    (tensor([1., 1., 1.]), tensor([-1., -1., -1.]))
    """

    buffer: _Buffer
    length: int

    @classmethod
    def from_vectors(cls, vectors: Float[Tensor, "*lead slot width"]) -> "AppendableTensor":
        """Return these vectors, without free space."""
        return cls(_Buffer(vectors, vectors.shape[-2]), vectors.shape[-2])

    def view(self) -> Float[Tensor, "*lead slot width"]:
        """Return the vectors so far."""
        return self.buffer.tensor[..., : self.length, :]

    def append(self, later: Float[Tensor, "*lead slot width"]) -> "AppendableTensor":
        """Return these vectors, then the later ones."""
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return AppendableTensor.from_vectors(torch.cat([self.view(), later], dim=-2))
        stop = self.length + later.shape[-2]
        buffer = self.buffer
        if buffer.taken != self.length or stop > buffer.tensor.shape[-2]:
            buffer = _Buffer(self._copy_wider(max(RESERVE, stop + stop // 2)), self.length)
        buffer.tensor[..., self.length : stop, :] = later
        buffer.taken = stop
        return AppendableTensor(buffer, stop)

    def _copy_wider(self, slots: int) -> Tensor:
        vectors = self.view()
        wider = vectors.new_empty(*vectors.shape[:-2], slots, vectors.shape[-1])
        wider[..., : self.length, :] = vectors
        return wider

    def select_rows(self, index: Int[Tensor, " row"]) -> "AppendableTensor":
        """Return some rows of the first axis."""
        return AppendableTensor.from_vectors(self.view().index_select(0, index))

    def select_slots(self, index: Int[Tensor, "row slot"]) -> "AppendableTensor":
        """Return some slots, given for each row of the first axis."""
        vectors = self.view()
        wide = index.view(index.shape[0], *(1,) * (vectors.dim() - 3), index.shape[1], 1)
        wide = wide.expand(*vectors.shape[:-2], index.shape[1], vectors.shape[-1])
        return AppendableTensor.from_vectors(vectors.gather(-2, wide))


@dataclass(frozen=True, slots=True, eq=False)
class KeyValueCache:
    """The keys and values of every layer of a decoder, in slots that the `width` hypotheses of a sentence share.

    `visible` marks the slots of each hypothesis (`all_visible`: all of them); `depth` is how many tokens each has. If
    hypotheses stay `alone`, as if each were a sentence, slots are in the order of positions, which a bias or a location
    score needs.
    """

    layers: tuple[tuple[AppendableTensor, AppendableTensor], ...]
    visible: Bool[Tensor, "sentence hypothesis slot"]
    alone: bool = False
    depth: int = 0
    all_visible: bool = True
    prune_above: int = PRUNE_ABOVE

    @classmethod
    def create_empty(cls, layers: Sequence[tuple[Tensor, Tensor]], *, alone: bool) -> "KeyValueCache":
        """Return an empty cache, from keys and values of no slots for each layer."""
        first = layers[0][0]
        visible = torch.zeros(first.shape[0], 1, 0, dtype=torch.bool, device=first.device)
        pairs = [(AppendableTensor.from_vectors(key), AppendableTensor.from_vectors(value)) for key, value in layers]
        return cls(tuple(pairs), visible, alone)

    @property
    def sentences(self) -> int:
        """How many sentences."""
        return self.visible.shape[0]

    @property
    def width(self) -> int:
        """How many hypotheses each of them has."""
        return self.visible.shape[1]

    def add_slots(self) -> "KeyValueCache":
        """Return the cache with one more slot for each hypothesis, still to be filled, that only it sees."""
        own = torch.eye(self.width, dtype=torch.bool, device=self.visible.device).expand(self.sentences, -1, -1)
        whole = self.all_visible and self.width == 1
        return replace(self, visible=torch.cat([self.visible, own], dim=-1), depth=self.depth + 1, all_visible=whole)

    def build_mask(self) -> Mask:
        """Return the mask of the slots of each hypothesis: causal if each sentence has one."""
        return Causal() if self.all_visible else Table(self.visible)

    def fold(self, rows: Tensor) -> Tensor:
        """Return `(row, …)` as `(sentence, hypothesis, …)`."""
        return rows.view(self.sentences, self.width, *rows.shape[1:])

    def select(self, index: Int[Tensor, " row"]) -> "KeyValueCache":
        """Return the cache of some hypotheses. Nothing is copied while every sentence keeps as many."""
        owners, width = (index, 1) if self.alone else regroup(index, self.sentences, self.width)
        visible = self.visible.flatten(0, 1).index_select(0, index).unflatten(0, (-1, width))
        layers = self.layers
        if owners is not None:
            layers = tuple((key.select_rows(owners), value.select_rows(owners)) for key, value in layers)
        cache = replace(self, layers=layers, visible=visible)
        return cache.prune() if visible.shape[-1] > self.prune_above else cache

    def prune(self) -> "KeyValueCache":
        """Remove the slots that no hypothesis of their sentence sees, if that halves them."""
        alive = self.visible.any(1)
        most, slots = int(alive.sum(1).max()), alive.shape[1]
        if 2 * most > slots:
            return replace(self, prune_above=2 * slots)
        index = alive.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
        visible = self.visible.gather(-1, index[:, None, :].expand(-1, self.width, -1))
        layers = tuple((key.select_slots(index), value.select_slots(index)) for key, value in self.layers)
        return replace(self, layers=layers, visible=visible, prune_above=max(PRUNE_ABOVE, 2 * most))
