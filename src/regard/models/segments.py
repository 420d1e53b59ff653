"""Steps of sentences of different lengths, in segments: each step is taken by the sentences that go on alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from regard.algebra.shapes import Int, Tensor
from regard.models.interface import AttentionSample, stack_steps

SPARE = 8  # a segment ends when one row in so many is finished: a new segment has a price, too


class Segment(NamedTuple):
    """Steps from `start` to before `stop`, of the first `rows` sentences."""

    start: int
    stop: int
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """All steps of a batch; `order` sorts its sentences, the longest first (None: they stay as they are)."""

    sentences: int
    order: Int[Tensor, " batch"] | None
    parts: tuple[Segment, ...]

    @classmethod
    def from_lengths(cls, lengths: Int[Tensor, " batch"] | None, sentences: int, steps: int) -> "Segments":
        """Return the segments of sentences with these lengths (None: all take all steps).

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
        """Return the rows of the batch in sorted order."""
        return rows if self.order is None else rows.index_select(0, self.order)

    def stack_steps(self, steps: Sequence[Tensor]) -> Tensor:
        """Return what each step computed as `(batch, step, …)` in the old order; zeros for steps not taken."""
        if self.order is None:
            return stack_steps(steps)
        rest = [(0, 0) * (step.dim() - 1) + (0, self.sentences - len(step)) for step in steps]
        whole = [torch.nn.functional.pad(step, pad) for step, pad in zip(steps, rest, strict=True)]
        return stack_steps(whole).index_select(0, self.order.argsort())

    def stack_samples(self, steps: Sequence[AttentionSample | None]) -> AttentionSample | None:
        """Return the samples of all steps as one; None if there are none."""
        made = [step for step in steps if step is not None]
        if not made:
            return None
        logs = [step.log_prob for step in made if step.log_prob is not None]
        return AttentionSample(
            self.stack_steps([step.soft_weights for step in made]), self.stack_steps(logs) if logs else None
        )
