"""What a report holds: recordings, each with a name, and the picture or sound that their keys are parts of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float32, UInt8

from regard.errors import InputError
from regard.inspect.draw.compression import encode_png, pack
from regard.inspect.recording import AttentionMap, Difference, Recording, TokenLabels

MOST = 512  # queries or keys that are written one by one
SMALL = 256  # cells that more of them are drawn in


class Regions(NamedTuple):
    """A picture whose regions are the keys: `grid` of them down and across, row by row."""

    pixels: UInt8[np.ndarray, "height width 3"]
    grid: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """As the page reads it."""
        rows, columns = self.grid
        return {"kind": "image", "image": encode_png(self.pixels), "grid": [rows, columns], "keys": rows * columns}


class Spectrogram(NamedTuple):
    """A spectrogram, low frequencies first, whose stretches of time are the keys, all of one length."""

    values: Float[np.ndarray, "bin frame"]
    keys: int
    seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As the page reads it."""
        bins, frames = self.values.shape
        values = pack(self.values.astype(np.float32), 7)
        facts = {"keys": self.keys, "bins": bins, "frames": frames, "seconds": self.seconds}
        return {"kind": "sound", "values": values, **facts}


@dataclass(frozen=True, slots=True)
class Chapter:
    """One recording of a report. Its `score` orders hypotheses; its keys may be parts of what lies `medium`."""

    name: str
    recording: Recording
    score: float | None = None
    medium: Regions | Spectrogram | None = None


@dataclass(slots=True)
class ReportBuilder:
    """Tables and labels that sites share, each kept once."""

    tables: list[Float32[np.ndarray, "head query key"]] = field(default_factory=list)
    labels: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    table_indices: dict[bytes, int] = field(default_factory=dict)

    def add_table(self, weights: Float32[np.ndarray, "head query key"]) -> int:
        """The place of a table; hypotheses of a sentence share what the encoder saw."""
        identity = repr(weights.shape).encode() + weights.tobytes()
        if identity not in self.table_indices:
            self.table_indices[identity] = len(self.tables)
            self.tables.append(weights)
        return self.table_indices[identity]

    def add_labels(self, labels: Sequence[str] | None) -> int | None:
        """The place of labels, or nothing where positions are numbered."""
        if labels is None:
            return None
        tokens = list(labels)
        if tokens not in self.labels:
            self.labels.append(tokens)
        return self.labels.index(tokens)

    def encode_chapter(self, chapter: Chapter) -> dict[str, Any]:
        """A chapter as the page reads it."""
        sites = []
        for name, seen in chapter.recording.items():
            try:
                sites.append(self.encode_site(name, seen, chapter.recording.labels.get(name)))
            except InputError as error:
                self.add_note(f"{name} is not shown: {error}")
        for note in chapter.recording.notes:
            self.add_note(note)
        beside = None if chapter.medium is None else chapter.medium.to_json()
        return {"name": chapter.name, "score": chapter.score, "beside": beside, "sites": sites}

    def encode_site(self, name: str, attention: AttentionMap, labels: TokenLabels | None) -> dict[str, Any]:
        """A site as the page reads it: all weights, or the largest of several to a cell where there are too many."""
        weights = shrink_weights(attention)
        heads, height, width = weights.shape
        rows = pool_labels(None if labels is None else labels.queries, attention.queries, height)
        columns = pool_labels(None if labels is None else labels.keys, attention.keys, width)
        return {
            "name": name,
            "kind": "difference" if isinstance(attention, Difference) else "weights",
            "rows": self.add_labels(rows),
            "columns": self.add_labels(columns),
            "heads": heads,
            "height": height,
            "width": width,
            "step": [-(-attention.queries // height), -(-attention.keys // width)],
            "table": self.add_table(weights),
        }

    def add_note(self, text: str) -> None:
        """What the reader should know, once."""
        if text not in self.notes:
            self.notes.append(text)


def shrink_weights(attention: AttentionMap) -> Float32[np.ndarray, "head query key"]:
    """All weights of a short attention, the largest of each cell of a long one."""
    if attention.queries <= MOST and attention.keys <= MOST:
        try:
            return attention.dense().float().cpu().numpy()
        except InputError:
            pass  # a sketch: the picture below is all there is
    size = (min(SMALL, attention.queries), min(SMALL, attention.keys))
    pictures = [
        attention.downsample(head, size=size, how="max").float().cpu().numpy() for head in range(attention.heads)
    ]
    return np.stack(pictures)


def pool_labels(labels: Sequence[str] | None, positions: int, cells: int) -> Sequence[str] | None:
    """Labels of cells: of positions where each has its own, else the ranges of positions in them.

    >>> pool_labels(None, 10, 4)
    ['1–3', '3–5', '6–8', '8–10']
    """
    if positions == cells:
        return labels
    bounds = [(cell * positions // cells + 1, -(-(cell + 1) * positions // cells)) for cell in range(cells)]
    return [f"{first}–{last}" for first, last in bounds]
