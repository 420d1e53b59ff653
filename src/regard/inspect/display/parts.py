"""Answer what a panel asks of a recording, by a server or by the kernel of a notebook.

These are its sites, small tables as a whole, and large ones by tiles.
"""

import json
import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.datasets.bounds import get_bound
from regard.errors import wrong
from regard.inspect.display.fields import Fields
from regard.inspect.measure import profile_heads
from regard.inspect.recording import AttentionMap, Recording, Sketch
from regard.inspect.recording.interruption import InterruptCheck, never_interrupt

TILE = 256  # cells of a side; SIZE of static/source.js is the same number, which a test compares
LEVELS = 24  # a cell is at most 2^24 weights wide
LABEL = 200  # characters of a label on its way to the page
CELLS = get_bound("store", "cells")  # weights that are sent as one table, unless a server has another limit
PartReader = Callable[[Fields, Recording, InterruptCheck], Tensor | bytes | Mapping[str, object]]


def read_part(recording: Recording, part: str, values: Mapping[str, object]) -> bytes:
    """Return a part of a recording as bytes, JSON or numbers, as a kernel answers; a server has its routes."""
    reader = READERS.get(part)
    if reader is None:
        raise wrong("part", repr(part[:40]), f"one of {', '.join(READERS)}", "ask as the panel does")
    fields = Fields(values)
    found = reader(fields, recording, never_interrupt)
    fields.finish()
    if isinstance(found, Tensor):
        return to_bytes(found)
    try:
        return found if isinstance(found, bytes) else json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:  # NaN is no JSON
        raise wrong(
            "weights", "numbers that are not finite", "finite ones", "look at what the model computes"
        ) from None


def list_sites(
    recording: Recording, cells: int, check_interrupt: InterruptCheck = never_interrupt
) -> list[dict[str, object]]:
    """Return the sites of a recording for a panel; tables of at most `cells` weights may be asked for as a whole."""
    sites = []
    for site, attention in recording.items():
        check_interrupt()
        labels = recording.labels.get(site)
        size = {"heads": attention.heads, "rows": attention.queries, "columns": attention.keys}
        facts = {
            "kind": str(attention.header()["kind"]),
            "whole": is_small(attention, cells),
            "labelled": labels is not None,
            "vectors": 0 if attention.origin is None else attention.origin.query.shape[-1],
            "measures": profile_heads(attention),
            "across": attention.queries != attention.keys if labels is None else labels.queries != labels.keys,
        }
        sites.append({"name": site, **size, **facts})
    return sites


def is_small(attention: AttentionMap, cells: int) -> bool:
    """Return whether all weights are kept and not more than `cells`."""
    return not isinstance(attention, Sketch) and math.prod(attention.shape) <= cells


def summarize_recording(fields: Fields, recording: Recording, check_interrupt: InterruptCheck) -> dict[str, object]:
    """Return the sites and notes of a recording."""
    return {"sites": list_sites(recording, CELLS, check_interrupt), "notes": recording.notes}


def take_site(fields: Fields, recording: Recording) -> tuple[str, AttentionMap]:
    """Return a site by its number."""
    if not len(recording):
        raise wrong("recording", "no attention in it", "at least one", "observe a model that attends")
    return list(recording.items())[fields.take_integer("site", 0, len(recording) - 1)]


def take_head(fields: Fields, attention: AttentionMap) -> int | None:
    """Return a head by its number; None, the mean of all, if the page asks for "mean"."""
    if fields.values.get("head") == "mean":
        fields.take("head")
        return None
    return fields.take_integer("head", 0, attention.heads - 1)


def get_labels(fields: Fields, recording: Recording, check_interrupt: InterruptCheck) -> dict[str, object]:
    """Return the tokens of one site, or how many positions its axes have."""
    site, attention = take_site(fields, recording)
    labels = recording.labels.get(site)
    if labels is None:
        return {"rows": attention.queries, "columns": attention.keys}
    return {"rows": [text[:LABEL] for text in labels.queries], "columns": [text[:LABEL] for text in labels.keys]}


def get_bundle(fields: Fields, recording: Recording, check_interrupt: InterruptCheck, cells: int = CELLS) -> bytes:
    """Return labels and weights of all small sites at once, of at most `cells` weights together.

    The length of a text in JSON (four bytes, the lowest first), the text, and behind it the weights as `to_bytes` has
    them. The text has the different lists of labels, and for each site which of them are its own; null for a site that
    is left out, which is to be asked for by itself.
    """
    labels: dict[str, int] = {}
    sites: list[list[int] | None] = []
    tables: list[bytes] = []
    left = cells
    for place, attention in enumerate(recording.values()):
        check_interrupt()
        if not is_small(attention, left):
            sites.append(None)
            continue
        own = get_labels(Fields({"site": place}), recording, check_interrupt)
        sites.append([labels.setdefault(json.dumps(own[axis]), len(labels)) for axis in ("rows", "columns")])
        tables.append(to_bytes(attention.dense()))
        left -= math.prod(attention.shape)
    head = f'{{"labels":[{",".join(labels)}],"sites":{json.dumps(sites)}}}'.encode()
    head += b" " * (-len(head) % 4)  # numbers begin where a browser can read them in place
    return len(head).to_bytes(4, "little") + head + b"".join(tables)


def get_table(fields: Fields, recording: Recording, check_interrupt: InterruptCheck, cells: int = CELLS) -> Tensor:
    """Return all weights of a small site, (heads, queries, keys)."""
    _, attention = take_site(fields, recording)
    if not is_small(attention, cells):
        raise wrong("site", f"{attention.shape} weights", f"at most {cells:,} that were all kept", "ask for tiles")
    return attention.dense()


def get_tile(fields: Fields, recording: Recording, check_interrupt: InterruptCheck) -> Tensor:
    """Return one tile of a site: each cell is the largest of 2^up × 2^across weights."""
    _, attention = take_site(fields, recording)
    head = take_head(fields, attention)
    up, across = fields.take_integer("up", 0, LEVELS), fields.take_integer("across", 0, LEVELS)
    rows = take_slice(fields, "row", up, attention.queries)
    columns = take_slice(fields, "column", across, attention.keys)
    bands = []
    for band in split_slice(rows, up):
        crops = [
            (band, part, (count_cells(band, up), count_cells(part, across))) for part in split_slice(columns, across)
        ]
        bands.append(torch.cat([pool_crop(attention, head, *crop, check_interrupt) for crop in crops], 1))
    return torch.cat(bands)


def pool_crop(
    attention: AttentionMap,
    head: int | None,
    rows: slice,
    columns: slice,
    size: tuple[int, int],
    check_interrupt: InterruptCheck,
) -> Tensor:
    """Return the largest weight in each of `size` cells of a part of an attention."""
    crop = attention.downsample(head, rows, columns, size=size, how="max", check_interrupt=check_interrupt).float()
    if tuple(crop.shape) != size:  # an overview has no finer cells: each is shown as many
        crop = F.interpolate(crop[None, None], size=size, mode="nearest")[0, 0]
    return crop


def take_slice(fields: Fields, name: str, level: int, length: int) -> slice:
    """Return the part of an axis that a tile covers."""
    step = TILE * 2**level
    start = fields.take_integer(name, 0, (length - 1) // step) * step
    return slice(start, min(length, start + step))


def split_slice(part: slice, level: int) -> list[slice]:
    """Return the part of an axis that fills whole cells of 2^level positions, and the rest, for a cell that is smaller.

    >>> split_slice(slice(8, 15), 1), split_slice(slice(0, 3), 2), split_slice(slice(0, 8), 2)
    ([slice(8, 14, None), slice(14, 15, None)], [slice(0, 3, None)], [slice(0, 8, None)])
    """
    edge = part.stop - (part.stop - part.start) % 2**level
    return [one for one in (slice(part.start, edge), slice(edge, part.stop)) if one.start < one.stop]


def count_cells(part: slice, level: int) -> int:
    """Return how many cells of 2^level positions a part of an axis has."""
    cells: int = -(-(part.stop - part.start) // 2**level)
    return cells


def find_row_maxima(fields: Fields, recording: Recording, check_interrupt: InterruptCheck) -> Tensor:
    """Return the largest weight of each query, for colors by row; for the mean of heads, an upper bound."""
    _, attention = take_site(fields, recording)
    head = take_head(fields, attention)
    tops = attention.top(1, check_interrupt).weights[..., 0]
    return (tops.mean(0) if head is None else tops[head]).float()


def get_weight(fields: Fields, recording: Recording, check_interrupt: InterruptCheck) -> dict[str, float | None]:
    """Return one weight; null if only statistics were kept."""
    _, attention = take_site(fields, recording)
    head = take_head(fields, attention)
    row, column = take_cell(fields, attention)
    if isinstance(attention, Sketch):
        return {"weight": None}
    weights = attention.tile(head, slice(row, row + 1), slice(column, column + 1))
    return {"weight": float(weights[0, 0])}


def take_cell(fields: Fields, attention: AttentionMap) -> tuple[int, int]:
    """Return a query and a key by their numbers."""
    row = fields.take_integer("row", 0, attention.queries - 1)
    return row, fields.take_integer("column", 0, attention.keys - 1)


def explain_weight(fields: Fields, recording: Recording, check_interrupt: InterruptCheck) -> dict[str, object]:
    """Return what made one weight, as the panel reads it; its `weight` is null if only statistics were kept."""
    _, attention = take_site(fields, recording)
    head = take_head(fields, attention)
    row, column = take_cell(fields, attention)
    if isinstance(attention, Sketch):
        return {"weight": None, "facts": None}
    return attention.explain(head, row, column).to_json()


def to_bytes(values: Tensor) -> bytes:
    """Return numbers as the page reads them: float32, row by row, lowest byte first."""
    content: bytes = values.detach().to(torch.float32).contiguous().numpy().astype("<f4").tobytes()
    return content


READERS: Mapping[str, PartReader] = {
    "summary": summarize_recording,
    "labels": get_labels,
    "bundle": get_bundle,
    "table": get_table,
    "tile": get_tile,
    "rows": find_row_maxima,
    "weight": get_weight,
    "explanation": explain_weight,
}
