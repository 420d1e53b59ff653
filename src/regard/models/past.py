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
from regard.models.selecting import regrouped

ROOM = 16  # slots that are made in advance, at least
CROWDED = 64  # slots from which it is worth looking for dead ones


class _Room:
    """Memory with space at the end, and how much of it is taken: shared by all that grew from one beginning."""

    __slots__ = ("taken", "tensor")

    def __init__(self, tensor: Tensor, taken: int) -> None:
        self.tensor, self.taken = tensor, taken


@dataclass(frozen=True, slots=True, eq=False)
class Growing:
    """Vectors along the second-last axis that more can be appended to, without copying those that are there.

    Appending gives another value and leaves this one as it is: whoever appends to the newest writes behind it, whoever
    appends to an older one gets a copy. Where a gradient or a graph is wanted everything is copied, as both need.

    >>> one = Growing.of(torch.zeros(2, 1, 3))
    >>> left, right = one.append(torch.ones(2, 1, 3)), one.append(-torch.ones(2, 1, 3))
    >>> left.view()[0, 1], right.view()[0, 1]
    (tensor([1., 1., 1.]), tensor([-1., -1., -1.]))
    """

    room: _Room
    length: int

    @classmethod
    def of(cls, vectors: Float[Tensor, "*lead slot width"]) -> "Growing":
        """These vectors, with no space behind them."""
        return cls(_Room(vectors, vectors.shape[-2]), vectors.shape[-2])

    def view(self) -> Float[Tensor, "*lead slot width"]:
        """The vectors so far."""
        return self.room.tensor[..., : self.length, :]

    def append(self, later: Float[Tensor, "*lead slot width"]) -> "Growing":
        """These, then the later ones."""
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return Growing.of(torch.cat([self.view(), later], dim=-2))
        stop = self.length + later.shape[-2]
        room = self.room
        if room.taken != self.length or stop > room.tensor.shape[-2]:
            room = _Room(self._copied(max(ROOM, stop + stop // 2)), self.length)
        room.tensor[..., self.length : stop, :] = later
        room.taken = stop
        return Growing(room, stop)

    def _copied(self, slots: int) -> Tensor:
        own = self.view()
        wider = own.new_empty(*own.shape[:-2], slots, own.shape[-1])
        wider[..., : self.length, :] = own
        return wider

    def rows(self, index: Int[Tensor, " row"]) -> "Growing":
        """Some rows of the first axis."""
        return Growing.of(self.view().index_select(0, index))

    def slots(self, index: Int[Tensor, "row slot"]) -> "Growing":
        """Some slots, named for each row of the first axis."""
        own = self.view()
        place = index.view(index.shape[0], *(1,) * (own.dim() - 3), index.shape[1], 1)
        return Growing.of(own.gather(-2, place.expand(*own.shape[:-2], index.shape[1], own.shape[-1])))


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """The keys and values of every layer of a decoder, in slots that the `width` hypotheses of a sentence share.

    `seen` says which slots belong to the past of which hypothesis (`whole`: all of them to all); `depth` is how many
    tokens each has said. Where hypotheses stay `alone`, as if each were a sentence, slots stand in the order of
    positions: what counts positions (a bias, a location score) needs that.
    """

    layers: tuple[tuple[Growing, Growing], ...]
    seen: Bool[Tensor, "sentence hypothesis slot"]
    alone: bool = False
    depth: int = 0
    whole: bool = True
    crowded: int = CROWDED

    @classmethod
    def of(cls, layers: Sequence[tuple[Tensor, Tensor]], *, alone: bool) -> "Past":
        """Nothing said yet: keys and values of no slots for each layer."""
        first = layers[0][0]
        seen = torch.zeros(first.shape[0], 1, 0, dtype=torch.bool, device=first.device)
        return cls(tuple((Growing.of(key), Growing.of(value)) for key, value in layers), seen, alone)

    @property
    def sentences(self) -> int:
        """How many sentences."""
        return self.seen.shape[0]

    @property
    def width(self) -> int:
        """How many hypotheses each of them has."""
        return self.seen.shape[1]

    def after(self) -> "Past":
        """The same with one more slot for each hypothesis, still to be filled, that only it sees."""
        own = torch.eye(self.width, dtype=torch.bool, device=self.seen.device).expand(self.sentences, -1, -1)
        whole = self.whole and self.width == 1
        return replace(self, seen=torch.cat([self.seen, own], dim=-1), depth=self.depth + 1, whole=whole)

    def mask(self) -> Mask:
        """Which slots each hypothesis reads: where there is one to a sentence, those up to its own."""
        return Causal() if self.whole else Table(self.seen)

    def fold(self, rows: Tensor) -> Tensor:
        """`(row, …)` as `(sentence, hypothesis, …)`."""
        return rows.view(self.sentences, self.width, *rows.shape[1:])

    def select(self, index: Int[Tensor, " row"]) -> "Past":
        """The past of some hypotheses. Nothing is copied while every sentence keeps as many."""
        owners, width = (index, 1) if self.alone else regrouped(index, self.sentences, self.width)
        seen = self.seen.flatten(0, 1).index_select(0, index).unflatten(0, (-1, width))
        layers = self.layers
        if owners is not None:
            layers = tuple((key.rows(owners), value.rows(owners)) for key, value in layers)
        past = replace(self, layers=layers, seen=seen)
        return past.pruned() if seen.shape[-1] > self.crowded else past

    def pruned(self) -> "Past":
        """Without the slots that no hypothesis of their sentence has in its past, where that halves them."""
        alive = self.seen.any(1)
        most, slots = int(alive.sum(1).max()), alive.shape[1]
        if 2 * most > slots:
            return replace(self, crowded=2 * slots)
        index = alive.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
        seen = self.seen.gather(-1, index[:, None, :].expand(-1, self.width, -1))
        layers = tuple((key.slots(index), value.slots(index)) for key, value in self.layers)
        return replace(self, layers=layers, seen=seen, crowded=max(CROWDED, 2 * most))
