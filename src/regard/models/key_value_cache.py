"""A key–value cache that beam search does not have to reorder: a tree of tokens for each sentence.

Other caches hold a row for each hypothesis and copy it whenever beam search reorders them. Here the hypotheses of a
sentence share one list of slots, one for each token of any of them, and `visible` marks the slots of each hypothesis.
Reordering moves these marks and no key; a token that several hypotheses have in common is stored once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from regard.algebra.masks import Causal, Mask, Table
from regard.algebra.shapes import Bool, Int, Tensor
from regard.layers.appendable import AppendableTensor
from regard.models.selection import regroup

PRUNE_ABOVE = 64  # slots from which it is worth looking for unused ones


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
