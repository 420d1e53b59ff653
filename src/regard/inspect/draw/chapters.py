"""The chapters of a report: recordings, each with a name, and the picture or sound that their keys are parts of."""

import base64
import hashlib
import io
import wave
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float32, UInt8

from regard.algebra.shapes import Tensor
from regard.errors import InputError
from regard.inspect.draw.compression import encode_png, pack
from regard.inspect.measure import profile_heads
from regard.inspect.recording import AttentionMap, Difference, Recording, TokenLabels

MOST = 512  # queries or keys that are written one by one
SMALL = 256  # cells that more of them are drawn in
COARSER = (128, 64, 32)  # cells of both axes, if a report would become too large


class Regions(NamedTuple):
    """A picture whose regions are the keys: `grid` of them down and across, row by row."""

    pixels: UInt8[np.ndarray, "height width 3"]
    grid: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Return it as the page reads it."""
        (height, width), (rows, columns) = self.pixels.shape[:2], self.grid
        facts = {"size": [width, height], "grid": [rows, columns], "keys": rows * columns}
        return {"kind": "image", "image": encode_png(self.pixels), **facts}


class Spectrogram(NamedTuple):
    """A spectrogram, low frequencies first, whose stretches of time are the keys, all of one length."""

    values: Float[np.ndarray, "bin frame"]
    keys: int
    seconds: float | None = None
    sound: tuple[Float[np.ndarray, " sample"], int] | None = None  # samples from −1 to 1, and how many a second has

    def to_json(self) -> dict[str, Any]:
        """Return it as the page reads it."""
        bins, frames = self.values.shape
        values = pack(self.values.astype(np.float32), 7)
        facts = {"keys": self.keys, "bins": bins, "frames": frames, "seconds": self.seconds}
        audio = None if self.sound is None else encode_wave(*self.sound)
        return {"kind": "sound", "values": values, "audio": audio, **facts}


def encode_wave(samples: Float[np.ndarray, " sample"], rate: int) -> str:
    """Return a sound as a WAV file in base64, of 16 bits and as loud as it can be."""
    loudest = max(float(np.abs(samples).max(initial=0.0)), 1e-9)
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setparams((1, 2, rate, 0, "NONE", ""))
        written.writeframes((samples / loudest * 32767).astype("<i2").tobytes())
    return base64.b64encode(file.getvalue()).decode("ascii")


@dataclass(frozen=True, slots=True)
class Chapter:
    """One recording of a report. Its `score` orders hypotheses; its keys may be parts of a `medium`."""

    name: str
    recording: Recording
    score: float | None = None
    medium: Regions | Spectrogram | None = None


@dataclass(slots=True)
class TableStore:
    """Arrays, each of them once: hypotheses of a sentence share those of the encoder."""

    arrays: list[Float32[np.ndarray, "..."]] = field(default_factory=list)
    indices: dict[bytes, int] = field(default_factory=dict)

    def add(self, array: Float32[np.ndarray, "..."]) -> int:
        """Return the index of an array."""
        identity = repr(array.shape).encode() + hashlib.blake2b(array.tobytes()).digest()
        if identity not in self.indices:
            self.indices[identity] = len(self.arrays)
            self.arrays.append(array)
        return self.indices[identity]

    def add_tensor(self, tensor: Tensor | None) -> int | None:
        """Return the index of a tensor; None if there is none."""
        return None if tensor is None else self.add(tensor.float().cpu().numpy())


@dataclass(slots=True)
class ReportBuilder:
    """Collect the tables, labels and notes of a report, each of them once.

    Axes of more than `cells` positions are drawn in so many; by default, only those that are long.
    """

    cells: int | None = None
    tables: TableStore = field(default_factory=TableStore)
    vectors: TableStore = field(default_factory=TableStore)
    labels: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_labels(self, labels: Sequence[str] | None) -> int | None:
        """Return the index of labels, or None if positions are numbered."""
        if labels is None:
            return None
        tokens = list(labels)
        if tokens not in self.labels:
            self.labels.append(tokens)
        return self.labels.index(tokens)

    def encode_chapter(self, chapter: Chapter) -> dict[str, Any]:
        """Return a chapter as the page reads it."""
        sites = []
        for name, attention in chapter.recording.items():
            try:
                sites.append(self.encode_site(name, attention, chapter.recording.labels.get(name)))
            except InputError as error:
                self.add_note(f"{name} is not shown: {error}")
        for note in chapter.recording.notes:
            self.add_note(note)
        beside = None if chapter.medium is None else chapter.medium.to_json()
        return {"name": chapter.name, "score": chapter.score, "beside": beside, "sites": sites}

    def encode_site(self, name: str, attention: AttentionMap, labels: TokenLabels | None) -> dict[str, Any]:
        """Return a site as the page reads it: all weights, or the largest of several in a cell if there are many."""
        weights = shrink_weights(attention, self.cells)
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
            "measures": profile_heads(attention),
            "table": self.tables.add(weights),
            "origin": self.encode_origin(attention) if (height, width) == (attention.queries, attention.keys) else None,
        }

    def encode_origin(self, attention: AttentionMap) -> dict[str, Any] | None:
        """Return what the weights were computed from, as `web/static/explanation.js` reads it, if that is known."""
        origin = attention.origin
        if origin is None:
            return None
        parts = {name: self.vectors.add_tensor(tensor) for name, tensor in origin.tensors().items()}
        shapes = {"dim": origin.query.shape[-1], "bias": None if origin.bias is None else list(origin.bias.shape)}
        return {**origin.header(), "shapes": shapes, "parts": parts}

    def add_note(self, text: str) -> None:
        """Add a note, unless it is there already."""
        if text not in self.notes:
            self.notes.append(text)


def count_cells(chapters: Sequence[Chapter], cells: int | None) -> int:
    """Return how many cells the attentions of all chapters are drawn in."""
    total = 0
    for chapter in chapters:
        for heads, *axes in (attention.shape for attention in chapter.recording.values()):
            height, width = choose_size((axes[0], axes[1]), cells) or axes
            total += heads * height * width
    return total


def choose_size(axes: tuple[int, int], cells: int | None) -> tuple[int, int] | None:
    """Return how many cells the axes of an attention are drawn in; None if every weight has its own.

    >>> choose_size((512, 3), None), choose_size((513, 3), None), choose_size((512, 3), 64)
    (None, (256, 3), (64, 3))
    """
    if max(axes) <= (MOST if cells is None else cells):
        return None
    most = SMALL if cells is None else cells
    return min(most, axes[0]), min(most, axes[1])


def shrink_weights(attention: AttentionMap, cells: int | None = None) -> Float32[np.ndarray, "head query key"]:
    """Return all weights of a short attention, the largest of each cell of a long one."""
    axes = attention.queries, attention.keys
    size = choose_size(axes, cells)
    if size is None:
        try:
            return attention.dense().float().cpu().numpy()
        except InputError:
            size = min(SMALL, axes[0]), min(SMALL, axes[1])  # a sketch, which can only be downsampled
    heads = [attention.downsample(head, size=size, how="max") for head in range(attention.heads)]
    return np.stack([head.float().cpu().numpy() for head in heads])


def pool_labels(labels: Sequence[str] | None, positions: int, cells: int) -> Sequence[str] | None:
    """Return labels of cells: those of the positions if each has its own cell, else ranges of positions.

    >>> pool_labels(None, 10, 4)
    ['0–2', '2–4', '5–7', '7–9']
    """
    if positions == cells:
        return labels
    bounds = [(cell * positions // cells, -(-(cell + 1) * positions // cells) - 1) for cell in range(cells)]
    return [f"{first}–{last}" for first, last in bounds]
