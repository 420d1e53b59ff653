"""A still picture of a report, for places where no script runs: one map with its tokens, and all heads small."""

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

from regard.inspect.draw.colors import build_palette
from regard.inspect.draw.compression import encode_png, unpack
from regard.inspect.draw.labels import cut_middle, make_visible, shorten_together

MAP = 420  # pixels of the map, at most
CELL = 26  # pixels of one of its cells, at most
LETTERS = 14  # cells of a token
TOKENS = 48  # positions whose tokens are written
THUMBNAIL, GAP = 22, 4  # pixels of a small picture and between two of them
MOST_SITES, MOST_HEADS = 16, 16  # that are shown small
FONT = "font-family='system-ui,sans-serif' font-size='11' fill='#444'"

Table = Float32[np.ndarray, "head row column"]


def draw_picture(contents: dict[str, Any]) -> str:
    """Return an SVG of the first chapter of what `build_contents` returns."""
    sites = contents["chapters"][0]["sites"]
    chosen = sites[find_first_site(sites)]
    table = read_table(contents, chosen)
    names = [label_axis(contents, chosen, axis) for axis in ("rows", "columns")]
    title = chosen["name"] + (", mean of heads" if chosen["heads"] > 1 else "")
    parts, width, height = draw_map(table.mean(0), names[0], names[1], chosen["kind"])
    if len(sites) > 1 or chosen["heads"] > 1:
        grid = draw_grid([read_table(contents, site) for site in sites[:MOST_SITES]])
        parts.append(embed_pixels(grid, width + 16, 24, grid.shape[1], grid.shape[0]))
        width, height = width + 16 + grid.shape[1], max(height, 24 + grid.shape[0])
    text = f"<text x='4' y='15' font-weight='600'>{html.escape(cut_middle(title, 60))}</text>"
    size = f"width='{width + 8}' height='{height + 8}'"
    frame = f"<svg xmlns='http://www.w3.org/2000/svg' {size} {FONT}><rect width='100%' height='100%' fill='#fff'/>"
    return f"{frame}{text}{''.join(parts)}</svg>"


def find_first_site(sites: list[dict[str, Any]]) -> int:
    """Return the last site that attends from one text to another, else the first; `web/static/sites.js` does so too."""
    across = [site["rows"] != site["columns"] or site["height"] != site["width"] for site in sites]
    return len(across) - 1 - across[::-1].index(True) if any(across) else 0


def read_table(contents: dict[str, Any], site: dict[str, Any]) -> Table:
    """Return the weights of a site."""
    return unpack(contents["tables"][site["table"]]).reshape(site["heads"], site["height"], site["width"])


def label_axis(contents: dict[str, Any], site: dict[str, Any], axis: str) -> list[str]:
    """Return the tokens of an axis as they are shown, none if there are too many to be read."""
    size = site["height" if axis == "rows" else "width"]
    if size > TOKENS:
        return []
    labels = [str(number) for number in range(size)] if site[axis] is None else contents["labels"][site[axis]]
    return [html.escape(label) for label in shorten_together(list(map(make_visible, labels)), LETTERS)]


def draw_map(
    weights: Float32[np.ndarray, "row column"], rows: list[str], columns: list[str], kind: str
) -> tuple[list[str], int, int]:
    """Return the elements of a map with its tokens, and its width and height."""
    cell = max(1.0, min(CELL, MAP / max(weights.shape)))
    height, width = (round(cell * size) for size in weights.shape)
    left, top = (10 + max((7 * len(label) for label in labels), default=0) for labels in (rows, columns))
    top += 22
    parts = [embed_pixels(color_weights(weights, kind), left, top, width, height)]
    for place, label in enumerate(rows):
        parts.append(f"<text x='{left - 5}' y='{top + (place + 0.5) * cell + 4:.0f}' text-anchor='end'>{label}</text>")
    for place, label in enumerate(columns):
        spot = f"{left + (place + 0.5) * cell + 4:.0f},{top - 5}"
        parts.append(f"<text transform='translate({spot}) rotate(-90)'>{label}</text>")
    return parts, left + width, top + height


def color_weights(weights: Float32[np.ndarray, "row column"], kind: str) -> UInt8[np.ndarray, "row column 3"]:
    """Return the colors of weights, scaled by the largest, as the panel scales weak ones."""
    largest = float(np.nanmax(np.abs(weights), initial=0.0)) or 1.0
    shares = np.nan_to_num(weights / largest)
    amounts = (shares + 1) / 2 if kind == "difference" else shares
    colors: UInt8[np.ndarray, "row column 3"] = build_palette(kind)[np.round(255 * amounts.clip(0, 1)).astype(int)]
    return colors


def draw_grid(tables: Sequence[np.ndarray]) -> UInt8[np.ndarray, "row column 3"]:
    """Return small pictures of the heads, a row for each site."""
    step = THUMBNAIL + GAP
    heads = min(MOST_HEADS, max(len(table) for table in tables))
    canvas = np.full((len(tables) * step, heads * step, 3), 255, dtype=np.uint8)
    for row, table in enumerate(tables):
        for column, weights in enumerate(table[:MOST_HEADS]):
            down, across = (np.arange(THUMBNAIL) * size // THUMBNAIL for size in weights.shape)
            pixels = color_weights(weights, "weights")[down][:, across]
            box = canvas[row * step : row * step + step, column * step : column * step + step]
            box[: THUMBNAIL + 2, : THUMBNAIL + 2] = 217
            box[1 : THUMBNAIL + 1, 1 : THUMBNAIL + 1] = pixels
    return canvas


def embed_pixels(pixels: UInt8[np.ndarray, "row column 3"], x: int, y: int, width: int, height: int) -> str:
    """Return an element of a picture."""
    place = f"x='{x}' y='{y}' width='{width}' height='{height}' preserveAspectRatio='none'"
    return f"<image {place} style='image-rendering:pixelated' href='{encode_png(pixels)}'/>"
