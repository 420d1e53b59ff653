"""An attention too long to write out, kept as statistics, its largest weights and a small picture."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from regard.algebra.shapes import Float, Tensor, describe
from regard.compute.weights import Top
from regard.errors import InputError, wrong
from regard.inspect.recording.seen import EVERY, Between, How, Seen, pooled, unhurried

FIX = "observe with a larger limit, or fewer sites"


@dataclass(frozen=True, slots=True)
class Overview:
    """All weights in cells of `step` queries × keys; the last cells may be smaller. Mean and largest of each."""

    mean: Float[Tensor, "head row column"]
    peak: Float[Tensor, "head row column"]
    step: tuple[int, int]

    def window(
        self, head: int | None, rows: tuple[int, int], columns: tuple[int, int], how: How
    ) -> Float[Tensor, "row column"]:
        """The cells that these queries and keys touch."""
        down, across = self.step
        cells = self.mean if how == "mean" else self.peak
        part = cells[:, rows[0] // down : -(-rows[1] // down), columns[0] // across : -(-columns[1] // across)]
        return part.mean(0) if head is None else part[head]


@dataclass(frozen=True, slots=True, eq=False)
class Sketch(Seen):
    """Statistics of all weights, the largest ones of each query, and an overview where one was made.

    `largest` and `places` have the weights and keys of the largest, in falling order.
    """

    spread: Float[Tensor, "head query"]
    mass: Float[Tensor, "head key"]
    largest: Float[Tensor, "head query k"]
    places: Tensor
    overview: Overview | None = field(default=None)

    def __post_init__(self) -> None:
        heads, queries, keys = _sizes(self.spread, self.mass)
        kept = self.largest.shape[-1] if self.largest.dim() == 3 else 0
        fits = self.largest.shape == self.places.shape == (heads, queries, kept) and 1 <= kept <= keys
        if not fits or self.places.is_floating_point():
            got = f"{describe(self.largest)} and {describe(self.places)}"
            raise wrong("largest", got, f"weights and keys ({heads}, {queries}, 1 … {keys})", "keep both of one top(k)")
        if self.overview is not None:
            _check_overview(self.overview, heads, queries, keys)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.spread.shape[0], self.spread.shape[1], self.mass.shape[1]

    def tile(self, head: int | None = None, rows: slice = EVERY, columns: slice = EVERY) -> Float[Tensor, "row column"]:
        raise unkept()

    def entropy(self) -> Float[Tensor, "head query"]:
        return self.spread

    def received(self) -> Float[Tensor, "head key"]:
        return self.mass

    def top(self, k: int, between: Between = unhurried) -> Top:
        self.count(k, self.largest.shape[-1])
        return Top(self.largest[..., :k], self.places[..., :k].long())

    def picture(
        self,
        head: int | None = None,
        rows: slice = EVERY,
        columns: slice = EVERY,
        *,
        size: tuple[int, int] = (512, 512),
        how: How = "mean",
        between: Between = unhurried,
    ) -> Float[Tensor, "height width"]:
        """As of the overview, whose cells are never cut; without one, of the largest weights alone."""
        self.one_head(head)
        start, stop = self.span("rows", rows, self.queries)
        first, last = self.span("columns", columns, self.keys)
        if self.overview is None:
            return self._of_largest(head, (start, stop), (first, last), size, how, between)
        part = self.overview.window(head, (start, stop), (first, last), how)
        return pooled(part, min(size[0], part.shape[0]), min(size[1], part.shape[1]), how)

    def tensors(self) -> dict[str, Tensor]:
        kept = {"entropy": self.spread, "received": self.mass, "largest": self.largest, "places": self.places}
        return kept if self.overview is None else {**kept, "mean": self.overview.mean, "peak": self.overview.peak}

    def facts(self) -> Mapping[str, object]:
        return {"kind": "sketch", "step": None if self.overview is None else list(self.overview.step)}

    def _of_largest(
        self,
        head: int | None,
        rows: tuple[int, int],
        columns: tuple[int, int],
        size: tuple[int, int],
        how: How,
        between: Between,
    ) -> Tensor:
        """The kept weights put into their cells; those that were not kept count as 0."""
        tall, wide = rows[1] - rows[0], columns[1] - columns[0]
        height, width = min(size[0], tall), min(size[1], wide)
        chosen = range(self.heads) if head is None else [head]
        cells = self.largest.new_zeros(height * width)
        down = torch.arange(tall)[:, None] * height // tall
        for number in chosen:  # one table at a time: there may be many heads
            between()
            places = self.places[number, rows[0] : rows[1]].long() - columns[0]
            inside = (places >= 0) & (places < wide)
            at = (down * width + places * width // wide)[inside]
            weights = self.largest[number, rows[0] : rows[1]][inside]
            cells += torch.zeros_like(cells).scatter_reduce_(0, at, weights, "sum" if how == "mean" else "amax")
        share = height * width / (tall * wide) if how == "mean" else 1.0
        return (cells * (share / len(chosen))).view(height, width)


def unkept() -> InputError:
    """What is said where single weights are asked for and only statistics are left."""
    expected = "an attention of which all weights or factors were kept"
    return wrong("tile", "an attention kept as statistics", expected, FIX)


def _sizes(spread: Tensor, mass: Tensor) -> tuple[int, int, int]:
    fits = spread.dim() == mass.dim() == 2 and spread.shape[0] == mass.shape[0]
    if not fits or 0 in (*spread.shape, *mass.shape):
        got = f"{describe(spread)} and {describe(mass)}"
        raise wrong("entropy and received", got, "(heads, queries) and (heads, keys)", "keep both of one attention")
    return spread.shape[0], spread.shape[1], mass.shape[1]


def _check_overview(overview: Overview, heads: int, queries: int, keys: int) -> None:
    down, across = overview.step
    expected = (heads, -(-queries // max(1, down)), -(-keys // max(1, across)))
    if min(down, across) < 1 or not overview.mean.shape == overview.peak.shape == expected:
        got = f"{describe(overview.mean)} and {describe(overview.peak)} in steps of {down} × {across}"
        raise wrong("overview", got, f"two tables {expected}", "pool whole tables")
