"""What hypotheses have said, remembered as keys and values: a tree for each sentence, so that nothing is reordered.

Other caches hold a row for each hypothesis and copy it whenever beam search reorders them. Here the hypotheses of a
sentence share one list of slots, one for each token that any of them said, and each knows which slots are its own
past. Reordering moves that knowledge and no key; a token that several hypotheses have in common is stored once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from regard.algebra.masks import Causal, Mask, Table
from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.models.selection import regroup

ROOM = 16  # slots that are made in advance, at least
CROWDED = 64  # slots from which it is worth looking for dead ones


class _Buffer:
    """Memory with space at the end, and how much of it is taken: shared by all that grew from one beginning."""

    __slots__ = ("taken", "tensor")

    def __init__(self, tensor: Tensor, taken: int) -> None:
        self.tensor, self.taken = tensor, taken


@dataclass(frozen=True, slots=True, eq=False)
class AppendableTensor:
    """Vectors along the second-last axis that more can be appended to, without copying those that are there.

    Appending gives another value and leaves this one as it is: whoever appends to the newest writes behind it, whoever
    appends to an older one gets a copy. Where a gradient or a graph is wanted everything is copied, as both need.

    >>> one = AppendableTensor.from_vectors(torch.zeros(2, 1, 3))
    >>> left, right = one.append(torch.ones(2, 1, 3)), one.append(-torch.ones(2, 1, 3))
    >>> left.view()[0, 1], right.view()[0, 1]
    (tensor([1., 1., 1.]), tensor([-1., -1., -1.]))
    """

    buffer: _Buffer
    length: int

    @classmethod
    def from_vectors(cls, vectors: Float[Tensor, "*lead slot width"]) -> "AppendableTensor":
        """These vectors, with no space behind them."""
        return cls(_Buffer(vectors, vectors.shape[-2]), vectors.shape[-2])

    def view(self) -> Float[Tensor, "*lead slot width"]:
        """The vectors so far."""
        return self.buffer.tensor[..., : self.length, :]

    def append(self, later: Float[Tensor, "*lead slot width"]) -> "AppendableTensor":
        """These, then the later ones."""
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return AppendableTensor.from_vectors(torch.cat([self.view(), later], dim=-2))
        stop = self.length + later.shape[-2]
        room = self.buffer
        if room.taken != self.length or stop > room.tensor.shape[-2]:
            room = _Buffer(self._copy_wider(max(ROOM, stop + stop // 2)), self.length)
        room.tensor[..., self.length : stop, :] = later
        room.taken = stop
        return AppendableTensor(room, stop)

    def _copy_wider(self, slots: int) -> Tensor:
        own = self.view()
        wider = own.new_empty(*own.shape[:-2], slots, own.shape[-1])
        wider[..., : self.length, :] = own
        return wider

    def select_rows(self, index: Int[Tensor, " row"]) -> "AppendableTensor":
        """Some rows of the first axis."""
        return AppendableTensor.from_vectors(self.view().index_select(0, index))

    def select_slots(self, index: Int[Tensor, "row slot"]) -> "AppendableTensor":
        """Some slots, named for each row of the first axis."""
        own = self.view()
        place = index.view(index.shape[0], *(1,) * (own.dim() - 3), index.shape[1], 1)
        return AppendableTensor.from_vectors(
            own.gather(-2, place.expand(*own.shape[:-2], index.shape[1], own.shape[-1]))
        )


@dataclass(frozen=True, slots=True, eq=False)
class KeyValueCache:
    """The keys and values of every layer of a decoder, in slots that the `width` hypotheses of a sentence share.

    `visible` says which slots belong to the past of which hypothesis (`all_visible`: all of them to all); `depth` is how many
    tokens each has said. Where hypotheses stay `alone`, as if each were a sentence, slots stand in the order of
    positions: what counts positions (a bias, a location score) needs that.
    """

    layers: tuple[tuple[AppendableTensor, AppendableTensor], ...]
    visible: Bool[Tensor, "sentence hypothesis slot"]
    alone: bool = False
    depth: int = 0
    all_visible: bool = True
    prune_above: int = CROWDED

    @classmethod
    def create_empty(cls, layers: Sequence[tuple[Tensor, Tensor]], *, alone: bool) -> "KeyValueCache":
        """Nothing said yet: keys and values of no slots for each layer."""
        first = layers[0][0]
        seen = torch.zeros(first.shape[0], 1, 0, dtype=torch.bool, device=first.device)
        return cls(
            tuple((AppendableTensor.from_vectors(key), AppendableTensor.from_vectors(value)) for key, value in layers),
            seen,
            alone,
        )

    @property
    def sentences(self) -> int:
        """How many sentences."""
        return self.visible.shape[0]

    @property
    def width(self) -> int:
        """How many hypotheses each of them has."""
        return self.visible.shape[1]

    def add_slots(self) -> "KeyValueCache":
        """The same with one more slot for each hypothesis, still to be filled, that only it sees."""
        own = torch.eye(self.width, dtype=torch.bool, device=self.visible.device).expand(self.sentences, -1, -1)
        whole = self.all_visible and self.width == 1
        return replace(self, visible=torch.cat([self.visible, own], dim=-1), depth=self.depth + 1, all_visible=whole)

    def build_mask(self) -> Mask:
        """Which slots each hypothesis reads: where there is one to a sentence, those up to its own."""
        return Causal() if self.all_visible else Table(self.visible)

    def fold(self, rows: Tensor) -> Tensor:
        """`(row, …)` as `(sentence, hypothesis, …)`."""
        return rows.view(self.sentences, self.width, *rows.shape[1:])

    def select(self, index: Int[Tensor, " row"]) -> "KeyValueCache":
        """The past of some hypotheses. Nothing is copied while every sentence keeps as many."""
        owners, width = (index, 1) if self.alone else regroup(index, self.sentences, self.width)
        seen = self.visible.flatten(0, 1).index_select(0, index).unflatten(0, (-1, width))
        layers = self.layers
        if owners is not None:
            layers = tuple((key.select_rows(owners), value.select_rows(owners)) for key, value in layers)
        past = replace(self, layers=layers, visible=seen)
        return past.prune() if seen.shape[-1] > self.prune_above else past

    def prune(self) -> "KeyValueCache":
        """Without the slots that no hypothesis of their sentence has in its past, where that halves them."""
        alive = self.visible.any(1)
        most, slots = int(alive.sum(1).max()), alive.shape[1]
        if 2 * most > slots:
            return replace(self, prune_above=2 * slots)
        index = alive.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
        seen = self.visible.gather(-1, index[:, None, :].expand(-1, self.width, -1))
        layers = tuple((key.select_slots(index), value.select_slots(index)) for key, value in self.layers)
        return replace(self, layers=layers, visible=seen, prune_above=max(CROWDED, 2 * most))
