"""Recordings for the page: what is in them, their tables whole where they are small, and by tiles where not."""

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import wrong
from regard.inspect.recording import AttentionMap, Recording, Sketch
from regard.web.bodies import Fields
from regard.web.store import StoredRecording
from regard.web.workers import Ticket

TILE = 256  # cells of a side; the page's source.js has the same number
LEVELS = 24  # a cell is at most 2^24 weights wide
LABEL = 200  # characters of a label on its way to the page


def summarize_recording(name: str, kept: StoredRecording, cells: int, ticket: Ticket) -> dict[str, object]:
    """What the page is told of a recording; `take_integer` says which tables may be asked for in one piece."""
    sites = []
    for site, seen in kept.recording.items():
        ticket.check()
        small = not isinstance(seen, Sketch) and seen.heads * seen.queries * seen.keys <= cells
        size = {"heads": seen.heads, "rows": seen.queries, "columns": seen.keys}
        kind = str(seen.header()["kind"])
        both = kept.recording.labels.get(site)
        across = seen.queries != seen.keys if both is None else both.queries != both.keys
        facts = {"kind": kind, "whole": small, "labelled": both is not None, "across": across}
        sites.append({"name": site, **size, **facts})
    return {"recording": name, "title": kept.title, "sites": sites, "notes": kept.recording.notes}


def take_site(fields: Fields, recording: Recording) -> tuple[str, AttentionMap]:
    """A site by its place."""
    if not len(recording):
        raise wrong("recording", "no attention in it", "at least one", "observe a model that attends")
    return list(recording.items())[fields.take_integer("site", 0, len(recording) - 1)]


def take_head(fields: Fields, attention: AttentionMap) -> int | None:
    """A head by its number; None, for the mean of all, where the page says "mean"."""
    if fields.values.get("head") == "mean":
        fields.take("head")
        return None
    return fields.take_integer("head", 0, attention.heads - 1)


def get_labels(fields: Fields, recording: Recording, ticket: Ticket) -> dict[str, object]:
    """The tokens of one site, or how many places its axes have."""
    site, seen = take_site(fields, recording)
    both = recording.labels.get(site)
    if both is None:
        return {"rows": seen.queries, "columns": seen.keys}
    return {"rows": [text[:LABEL] for text in both.queries], "columns": [text[:LABEL] for text in both.keys]}


def get_table(fields: Fields, recording: Recording, cells: int) -> Tensor:
    """All weights of a small site, (heads, queries, keys)."""
    _, seen = take_site(fields, recording)
    if isinstance(seen, Sketch) or seen.heads * seen.queries * seen.keys > cells:
        raise wrong("site", f"{seen.shape} weights", f"at most {cells:,} that were all kept", "ask for tiles")
    return seen.dense()


def get_tile(fields: Fields, recording: Recording, ticket: Ticket) -> Tensor:
    """One tile of a site: each cell is the largest of 2^up × 2^across weights."""
    _, seen = take_site(fields, recording)
    head = take_head(fields, seen)
    up, across = fields.take_integer("up", 0, LEVELS), fields.take_integer("across", 0, LEVELS)
    rows = take_slice(fields, "row", up, seen.queries)
    columns = take_slice(fields, "column", across, seen.keys)
    size = count_cells(rows, up), count_cells(columns, across)
    picture = seen.downsample(head, rows, columns, size=size, how="max", between=ticket.check).float()
    if tuple(picture.shape) != size:  # an overview has no finer cells: each is shown as many
        picture = F.interpolate(picture[None, None], size=size, mode="nearest")[0, 0]
    return picture


def take_slice(fields: Fields, name: str, level: int, length: int) -> slice:
    """What a tile covers of an axis."""
    step = TILE * 2**level
    start = fields.take_integer(name, 0, (length - 1) // step) * step
    return slice(start, min(length, start + step))


def count_cells(part: slice, level: int) -> int:
    cells: int = -(-(part.stop - part.start) // 2**level)
    return cells


def find_row_maxima(fields: Fields, recording: Recording, ticket: Ticket) -> Tensor:
    """The largest weight of each query, for colors by row; for the mean of heads, at most so much."""
    _, seen = take_site(fields, recording)
    head = take_head(fields, seen)
    tops = seen.top(1, ticket.check).weights[..., 0]
    return (tops.mean(0) if head is None else tops[head]).float()


def get_weight(fields: Fields, recording: Recording, ticket: Ticket) -> dict[str, float | None]:
    """One weight; null where only statistics were kept."""
    _, seen = take_site(fields, recording)
    head = take_head(fields, seen)
    row, column = fields.take_integer("row", 0, seen.queries - 1), fields.take_integer("column", 0, seen.keys - 1)
    if isinstance(seen, Sketch):
        return {"weight": None}
    weights = seen.tile(head, slice(row, row + 1), slice(column, column + 1))
    return {"weight": float(weights[0, 0])}


def to_bytes(values: Tensor) -> bytes:
    """Numbers as the page reads them: float32, row by row, lowest byte first."""
    content: bytes = values.detach().to(torch.float32).contiguous().numpy().astype("<f4").tobytes()
    return content
