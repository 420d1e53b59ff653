"""A still picture of a report, for places where no script runs: one map with its tokens, and all heads small."""

import html
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8

from regard.inspect.draw.colors import build_palette
from regard.inspect.draw.compression import encode_png, unpack
from regard.inspect.draw.labels import cut_middle, make_visible, measure_cells, shorten_together
from regard.inspect.draw.words import Language, localize

MAP = 528  # pixels of the map, at most
CELL = 26.0  # pixels of one of its cells, at most
LINE = 11  # pixels of a line of text: tokens of smaller cells would be written over each other
LETTERS = 14  # cells of a token
EVERY = (1, 2, 5, 10, 20, 50)  # cells from one number to the next
APART = 24  # pixels between the numbers of positions whose tokens are not written, at least
THUMBNAIL, GAP = 22, 4  # pixels of a small picture and between two of them
MOST_SITES, MOST_HEADS = 16, 16  # that are shown small
SCALE = 120  # pixels of the scale of colors
FONT = "font-family='system-ui,sans-serif' font-size='11' fill='#444'"

Table = Float32[np.ndarray, "head row column"]


class Canvas(NamedTuple):
    """Elements of a picture, and the corner that is right of them and below."""

    parts: list[str]
    width: int
    height: int


def draw_picture(contents: dict[str, Any]) -> str:
    """Return an SVG of the first chapter of what `build_contents` returns."""
    sites = contents["chapters"][0]["sites"]
    language: Language = contents.get("language") or "en"
    chosen = sites[find_first_site(sites)]
    mean = ", " + localize("mean of heads", language) if chosen["heads"] > 1 else ""
    canvas = draw_map(contents, chosen, language)
    if len(sites) > 1 or chosen["heads"] > 1:
        tables = {site["name"]: (read_table(contents, site), site["kind"]) for site in sites[:MOST_SITES]}
        heads = draw_heads(tables, canvas.width + 24, language)
        canvas = Canvas(canvas.parts + heads.parts, heads.width, max(canvas.height, heads.height))
    title = cut_middle(chosen["name"] + mean, 60)
    text = write(4, 15, title, "font-weight='600'")
    size = f"width='{max(canvas.width, 7 * measure_cells(title)) + 8}' height='{canvas.height + 8}'"
    frame = f"<svg xmlns='http://www.w3.org/2000/svg' {size} {FONT}><rect width='100%' height='100%' fill='#fff'/>"
    return f"{frame}{text}{''.join(canvas.parts)}</svg>"


def find_first_site(sites: list[dict[str, Any]]) -> int:
    """Return the last site that attends from one text to another, else the first; `web/static/sites.js` does so too."""
    across = [site["rows"] != site["columns"] or site["height"] != site["width"] for site in sites]
    return len(across) - 1 - across[::-1].index(True) if any(across) else 0


def read_table(contents: dict[str, Any], site: dict[str, Any]) -> Table:
    """Return the weights of a site."""
    return unpack(contents["tables"][site["table"]]).reshape(site["heads"], site["height"], site["width"])


def label_axis(contents: dict[str, Any], site: dict[str, Any], axis: str, cell: float) -> list[tuple[int, str]]:
    """Return what is written along an axis, by cell: all tokens if they can be read, else some positions."""
    size, step = (site["height"], site["step"][0]) if axis == "rows" else (site["width"], site["step"][1])
    labels = None if site[axis] is None else list(map(make_visible, contents["labels"][site[axis]]))
    if cell >= LINE and labels is not None:
        return list(enumerate(shorten_together(labels, LETTERS)))
    every = next(number for number in EVERY if number * cell >= APART)
    ranges = labels if labels is not None and step > 1 else list(map(str, range(size)))
    return [(place, ranges[place].partition("–")[0]) for place in range(0, size, every)]


def draw_map(contents: dict[str, Any], site: dict[str, Any], language: Language) -> Canvas:
    """Return the mean of all heads as a map with tokens or positions, and below it what its colors mean."""
    weights = read_table(contents, site).mean(0)
    cell = max(1.0, min(CELL, MAP / max(weights.shape)))
    height, width = (round(cell * size) for size in weights.shape)
    rows, columns = (label_axis(contents, site, axis, cell) for axis in ("rows", "columns"))
    left, top = (10 + max(7 * measure_cells(label) for _, label in labels) for labels in (rows, columns))
    top += 22
    frame = f"<rect x='{left - 1}' y='{top - 1}' width='{width + 2}' height='{height + 2}' fill='#d9d9d9'/>"
    parts = [frame, embed_pixels(color_weights(weights, site["kind"]), left, top, width, height)]
    for place, label in rows:
        parts.append(write(left - 5, top + 4 + round((place + 0.5) * cell), label, "text-anchor='end'"))
    for place, label in columns:
        x, y = left + 4 + round((place + 0.5) * cell), top - 5
        parts.append(write(x, y, label, f"transform='rotate(-90 {x} {y})'"))
    scale = draw_scale(weights, site["kind"], left, top + height + 12, language)
    return Canvas(parts + scale.parts, max(left + width, scale.width), scale.height)


def draw_scale(weights: Float32[np.ndarray, "row column"], kind: str, x: int, y: int, language: Language) -> Canvas:
    """Return the colors from the least to the most, with their numbers."""
    largest, least = find_largest(weights), -1.0 if kind == "difference" else 0.0
    shades = np.linspace(least, 1, SCALE, dtype=np.float32)[None]
    numbers = [(x, least * largest, "start"), (x + SCALE, largest, "end")]
    parts = [f"<rect x='{x - 1}' y='{y - 1}' width='{SCALE + 2}' height='10' fill='#d9d9d9'/>"]
    parts.append(embed_pixels(color_weights(shades, kind), x, y, SCALE, 8))
    parts += [write(at, y + 20, f"{number:.2g}", f"text-anchor='{side}'") for at, number, side in numbers]
    name = localize("difference" if kind == "difference" else "weight", language)
    parts.append(write(x + SCALE + 8, y + 8, name))
    return Canvas(parts, x + SCALE + 8 + 7 * measure_cells(name), y + 22)


def find_largest(weights: Float32[np.ndarray, "row column"]) -> float:
    """Return the number of the last color: the largest weight."""
    return float(np.nanmax(np.abs(weights), initial=0.0)) or 1.0


def color_weights(weights: Float32[np.ndarray, "row column"], kind: str) -> UInt8[np.ndarray, "row column 3"]:
    """Return the colors of weights, scaled by the largest, as the panel scales weak ones."""
    shares = np.nan_to_num(weights / find_largest(weights))
    amounts = (shares + 1) / 2 if kind == "difference" else shares
    colors: UInt8[np.ndarray, "row column 3"] = build_palette(kind)[np.round(255 * amounts.clip(0, 1)).astype(int)]
    return colors


def draw_heads(tables: Mapping[str, tuple[Table, str]], x: int, language: Language) -> Canvas:
    """Return small pictures of the heads under their numbers, a row for each site before its name."""
    step, y = THUMBNAIL + GAP, 40
    heads = min(MOST_HEADS, max(len(table) for table, _ in tables.values()))
    pixels = np.full((len(tables) * step, heads * step, 3), 255, dtype=np.uint8)
    for row, (table, kind) in enumerate(tables.values()):
        for column, weights in enumerate(table[:MOST_HEADS]):
            box = pixels[row * step : row * step + THUMBNAIL + 2, column * step : column * step + THUMBNAIL + 2]
            box[:] = 217
            box[1:-1, 1:-1] = color_weights(shrink_head(weights), kind)
    height, width = y + pixels.shape[0], x + pixels.shape[1]
    parts = [embed_pixels(pixels, x, y, pixels.shape[1], pixels.shape[0])]
    parts += [write(x + place * step + step // 2, y - 4, str(place), "text-anchor='middle'") for place in range(heads)]
    names = shorten_together(list(tables), 2 * LETTERS)
    parts += [write(width + 4, y + place * step + 16, name) for place, name in enumerate(names)]
    note = localize("each head by its own largest weight", language)
    parts.append(write(x, height + 12, note))
    cells = max(map(measure_cells, names))
    return Canvas(parts, max(width + 4 + 7 * cells, x + 7 * measure_cells(note)), height + 14)


def shrink_head(weights: Float32[np.ndarray, "row column"]) -> Float32[np.ndarray, "small small"]:
    """Return a head in few cells, each with the weight that is farthest from zero, so that none is lost."""
    down, across = (np.arange(THUMBNAIL) * size // THUMBNAIL for size in weights.shape)
    most, least = (reduce.reduceat(reduce.reduceat(weights, down, 0), across, 1) for reduce in (np.maximum, np.minimum))
    return np.where(most >= -least, most, least)


def write(x: int, y: int, text: str, more: str = "") -> str:
    """Return a line of text."""
    return f"<text x='{x}' y='{y}' {more}>{html.escape(text)}</text>"


def embed_pixels(pixels: UInt8[np.ndarray, "row column 3"], x: int, y: int, width: int, height: int) -> str:
    """Return an element of a picture."""
    place = f"x='{x}' y='{y}' width='{width}' height='{height}' preserveAspectRatio='none'"
    return f"<image {place} style='image-rendering:pixelated' href='{encode_png(pixels)}'/>"
