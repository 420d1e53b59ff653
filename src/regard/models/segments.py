"""Steps of sentences that end at different times, in stretches: each is taken by those alone that go on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from regard.algebra.shapes import Float, Int, Tensor
from regard.models.interface import Alignment, AttentionSample

SPARE = 8  # a stretch ends when one row in so many has nothing more to say: a new one costs a little, too


class Segment(NamedTuple):
    """Steps from `start` to before `stop`, of the first `rows` sentences."""

    start: int
    stop: int
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """All steps of a batch of so many sentences; `order` names them, the longest first (None: as they are)."""

    sentences: int
    order: Int[Tensor, " batch"] | None
    parts: tuple[Segment, ...]

    @classmethod
    def from_lengths(cls, lengths: Int[Tensor, " batch"] | None, sentences: int, steps: int) -> "Segments":
        """The stretches of sentences with these lengths (None: all take all steps).

        >>> Segments.from_lengths(torch.tensor([1, 3, 3]), 3, 3).parts
        (Segment(start=0, stop=1, rows=3), Segment(start=1, stop=3, rows=2))
        """
        if lengths is None or not steps or bool((lengths >= steps).all()):
            return cls(sentences, None, (Segment(0, steps, sentences),))
        going = (lengths > torch.arange(steps, device=lengths.device)[:, None]).sum(1).clamp_min(1).tolist()
        starts = [0]
        for step, rows in enumerate(going):
            if rows * SPARE <= going[starts[-1]] * (SPARE - 1):
                starts.append(step)
        stops = [*starts[1:], steps]
        parts = tuple(Segment(start, stop, going[start]) for start, stop in zip(starts, stops, strict=True))
        return cls(sentences, lengths.argsort(descending=True, stable=True), parts)

    def sort_rows(self, rows: Tensor) -> Tensor:
        """The rows in that order."""
        return rows if self.order is None else rows.index_select(0, self.order)

    def stack_steps(self, steps: Sequence[Tensor]) -> Tensor:
        """What each step made for its rows, as `(batch, step, …)` in the old order; zeros where none was taken."""
        if self.order is None:
            return torch.stack(list(steps), dim=1)
        rest = [(0, 0) * (step.dim() - 1) + (0, self.sentences - len(step)) for step in steps]
        whole = [torch.nn.functional.pad(step, pad) for step, pad in zip(steps, rest, strict=True)]
        return torch.stack(whole, dim=1).index_select(0, self.order.argsort())

    def build_alignment(self, steps: Sequence[Alignment | None]) -> "SegmentedAlignment | None":
        """Where all steps looked; None where none did."""
        found = tuple(step for step in steps if step is not None)
        return SegmentedAlignment(self, found) if found else None

    def stack_samples(self, steps: Sequence[AttentionSample | None]) -> AttentionSample | None:
        """How all steps came to where they looked; None where nothing was chosen."""
        made = [step for step in steps if step is not None]
        if not made:
            return None
        logs = [step.log_prob for step in made if step.log_prob is not None]
        return AttentionSample(
            self.stack_steps([step.soft_weights for step in made]), self.stack_steps(logs) if logs else None
        )


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedAlignment:
    """Weights of one step after another, put together when they are asked for."""

    plan: Segments
    steps: tuple[Alignment, ...]

    def dense(self) -> Float[Tensor, "batch target source"]:
        """All of them."""
        return self.plan.stack_steps([step.dense() for step in self.steps])
