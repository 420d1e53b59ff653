"""Several attentions of one site, one below the other."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from regard.inspect.recording.attention_map import AttentionMap, DenseMap
from regard.inspect.recording.sketch import Sketch

WHOLE = 2**28  # weights that are written out together: a file of little may claim keys far away


def stack(calls: Sequence[AttentionMap], offsets: Sequence[int]) -> tuple[AttentionMap, int]:
    """Return the rows of all calls, and the position of the first of their keys.

    `offsets` are the positions of the first key of each call. Keys that a call did not have have no weight in its rows.
    Whole if all are whole, else as statistics.

    >>> steps = [DenseMap(torch.ones(1, 1, 1)), DenseMap(torch.tensor([[[0.5, 0.5]]]))]
    >>> stack(steps, [0, 0])[0].dense()
    tensor([[[1.0000, 0.0000],
             [0.5000, 0.5000]]])
    >>> stack(steps, [0, 1])[0].dense()
    tensor([[[1.0000, 0.0000, 0.0000],
             [0.0000, 0.5000, 0.5000]]])
    """
    first = min(offsets)
    if len(calls) == 1:
        return calls[0], first
    keys = max(offset + seen.keys for seen, offset in zip(calls, offsets, strict=True)) - first
    rooms = [(offset - first, keys - (offset - first) - seen.keys) for seen, offset in zip(calls, offsets, strict=True)]
    size = calls[0].heads * sum(seen.queries for seen in calls) * keys
    if size <= WHOLE and all(isinstance(seen, DenseMap) for seen in calls):
        tables = [F.pad(seen.dense(), room) for seen, room in zip(calls, rooms, strict=True)]
        return DenseMap(torch.cat(tables, dim=1)), first
    kept = min(_count_known(seen) for seen in calls)
    weights, places = zip(*(seen.top(kept) for seen in calls), strict=True)
    shifted = [place + room[0] for place, room in zip(places, rooms, strict=True)]
    received = calls[0].received_weight().new_zeros(calls[0].heads, keys)
    for seen, (start, _) in zip(calls, rooms, strict=True):
        received[:, start : start + seen.keys] += seen.received_weight()
    spread = torch.cat([seen.entropy() for seen in calls], dim=1)
    return Sketch(spread, received, torch.cat(weights, 1), torch.cat(shifted, 1).int()), first


def _count_known(attention: AttentionMap) -> int:
    """How many of its largest weights are known."""
    largest = attention.tensors().get("largest")
    return attention.keys if largest is None else largest.shape[-1]
