"""Several attentions of one site, one below the other."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from regard.recording.seen import Seen, Whole
from regard.recording.sketch import Sketch


def stack(calls: Sequence[Seen]) -> Seen:
    """The rows of all calls; keys that a call did not have have no weight in its rows.

    Whole where all are whole, else as statistics.

    >>> steps = [Whole(torch.ones(1, 1, 1)), Whole(torch.tensor([[[0.5, 0.5]]]))]
    >>> stack(steps).dense()
    tensor([[[1.0000, 0.0000],
             [0.5000, 0.5000]]])
    """
    if len(calls) == 1:
        return calls[0]
    keys = max(seen.keys for seen in calls)
    if all(isinstance(seen, Whole) for seen in calls):
        return Whole(torch.cat([F.pad(seen.dense(), (0, keys - seen.keys)) for seen in calls], dim=1))
    kept = min(_kept(seen) for seen in calls)
    weights, places = zip(*(seen.top(kept) for seen in calls), strict=True)
    received = torch.stack([F.pad(seen.received(), (0, keys - seen.keys)) for seen in calls]).sum(0)
    spread = torch.cat([seen.entropy() for seen in calls], dim=1)
    return Sketch(spread, received, torch.cat(weights, 1), torch.cat(places, 1).int())


def _kept(seen: Seen) -> int:
    """How many of its largest weights are known."""
    largest = seen.tensors().get("largest")
    return seen.keys if largest is None else largest.shape[-1]
