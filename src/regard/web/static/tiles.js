// Tiles of a source as painted canvases, kept while they are of use.

import { buildPalette } from "./colors.js";
import { SIZE } from "./source.js";

const KEPT = 400; // painted tiles: 100 MB at most
const packed = new Map(); // palettes as pixels: the same for every map

/** A store of tiles. `arrived` is called when one that was missing has come. */
export function createTileStore(source, arrived) {
  const found = new Map(); // name → { values, canvas, paint } or "asked"
  return { get, nearest };

  /** The tile painted so, or undefined while it is on its way. */
  function get(up, across, row, column, paint) {
    const name = `${up}/${across}/${row}/${column}`;
    let tile = found.get(name);
    if (tile === undefined) tile = ask(name, up, across, row, column);
    if (tile === "asked" || tile === "missing") return undefined;
    found.delete(name);
    found.set(name, tile); // the last one used is the last one to go
    if (tile.paint !== paint.name) paintTile(tile, paint, row * SIZE * 2 ** up, 2 ** up);
    return tile.canvas;
  }

  function ask(name, up, across, row, column) {
    const answer = source.tile(up, across, row, column);
    if (typeof answer?.then !== "function") return keep(name, answer);
    found.set(name, "asked");
    answer.then(
      (table) => { keep(name, table); arrived(); },
      () => found.set(name, "missing"),
    );
    return "asked";
  }

  function keep(name, table) {
    const tile = { ...table, canvas: undefined, paint: undefined };
    found.set(name, tile);
    for (const old of found.keys()) {
      if (found.size <= KEPT) break;
      if (found.get(old) !== "asked") found.delete(old);
    }
    return tile;
  }

  /** A coarser tile that covers this one, while this one is on its way: { canvas, levels }. */
  function nearest(up, across, row, column, paint, highest) {
    for (let more = 1; more <= highest; more += 1) {
      const name = `${up + more}/${across + more}/${row >> more}/${column >> more}`;
      if (typeof found.get(name) === "object") {
        return { canvas: get(up + more, across + more, row >> more, column >> more, paint), more };
      }
    }
    return undefined;
  }

  function paintTile(tile, paint, firstRow, rowsOfCell) {
    tile.canvas ??= document.createElement("canvas");
    const whole = (row) => findRowLargest(source, firstRow + row * rowsOfCell, rowsOfCell);
    colorTable(tile.canvas, tile, paint, source.largest, whole);
    tile.paint = paint.name;
  }
}

function findRowLargest(source, first, rows) {
  let most = 0;
  for (let row = first; row < Math.min(first + rows, source.rows); row += 1) {
    most = Math.max(most, source.largestOfRow(row));
  }
  return most;
}

/** How a table is colored: `scale`, `threshold` and `kind` as in heatmap.js. Paints of one name are alike. */
export function createPaint({ scale = "none", threshold = 0, kind = "weights", dark = false }) {
  const name = [scale, threshold, kind, dark].join();
  return { scale, threshold, difference: kind === "difference", pixels: packPixels(kind, dark), name };
}

// A number for each color: pixels that are written byte by byte take many times as long, and tiles have 65,536 of them.
function packPixels(kind, dark) {
  const known = `${kind}/${dark}`;
  if (packed.has(known)) return packed.get(known);
  const colors = buildPalette(kind, dark);
  const bytes = new Uint8ClampedArray((colors.length / 3) * 4).fill(255);
  for (let step = 0; step < colors.length / 3; step += 1) bytes.set(colors.subarray(3 * step, 3 * step + 3), 4 * step);
  packed.set(known, new Uint32Array(bytes.buffer));
  return packed.get(known);
}

/** Paints a table, a pixel for each cell; `computeAmount` of source.js for all of them at once. */
export function colorTable(canvas, table, paint, largest, largestOfRow) {
  Object.assign(canvas, { width: table.columns, height: table.rows });
  const context = canvas.getContext("2d");
  const picture = context.createImageData(table.columns, table.rows);
  const pixels = new Uint32Array(picture.data.buffer);
  for (let row = 0; row < table.rows; row += 1) {
    const whole = paint.scale === "row" ? largestOfRow(row) : paint.scale === "global" ? largest : 1;
    colorRow(pixels, table.values, row * table.columns, (row + 1) * table.columns, whole, paint);
  }
  context.putImageData(picture, 0, 0);
}

function colorRow(pixels, values, first, end, whole, { difference, threshold, pixels: colors }) {
  const [nothing, unit] = difference ? [127.5, 127.5] : [0, 255];
  for (let cell = first; cell < end; cell += 1) {
    const share = whole > 0 ? values[cell] / whole : 0;
    const size = Math.abs(share); // NaN and infinities are drawn as nothing
    const shade = size >= threshold && size < Infinity ? nothing + unit * share : nothing;
    pixels[cell] = colors[Math.min(255, Math.max(0, Math.round(shade)))];
  }
}

/** Paints all of a table in at most `most` pixels each way, as a small picture of it. */
export function drawThumbnail(canvas, source, paint, most) {
  const level = (cells) => Math.max(0, Math.ceil(Math.log2(cells / Math.min(most, SIZE))));
  const [up, across] = [level(source.rows), level(source.columns)];
  const table = source.tile(up, across, 0, 0);
  colorTable(canvas, table, paint, source.largest, (row) => findRowLargest(source, row * 2 ** up, 2 ** up));
}

/** Draws the tiles in sight of a map: `position`, `plot`, `margins`, `source`, `tiles`, `paint`, `pixels`. */
export function drawTiles(context, map) {
  const { position, plot, source } = map;
  const [up, across] = chooseLevels(map);
  const rows = findVisible(position.y, position.height * 2 ** up * SIZE, plot.height, source.rows * position.height);
  const columns = findVisible(position.x, position.width * 2 ** across * SIZE, plot.width, source.columns * position.width);
  context.imageSmoothingEnabled = false;
  for (let row = rows.first; row <= rows.last; row += 1) {
    for (let column = columns.first; column <= columns.last; column += 1) {
      drawTile(context, map, { up, across, row, column });
    }
  }
}

// Weights are pooled until a cell has at least a pixel of the screen.
function chooseLevels({ position, pixels, source }) {
  const level = (size) => Math.max(0, Math.ceil(Math.log2(1 / (size * pixels)) - 0.01));
  const [up, across] = [level(position.height), level(position.width)];
  return source.square ? [Math.max(up, across), Math.max(up, across)] : [up, across];
}

function findVisible(offset, size, room, end) {
  return { first: Math.floor(-offset / size), last: Math.floor((Math.min(end, room - offset) - 1e-6) / size) };
}

function drawTile(context, { position, margins, tiles, paint }, { up, across, row, column }) {
  const exact = tiles.get(up, across, row, column, paint);
  const tile = exact ? { canvas: exact, more: 0 } : tiles.nearest(up, across, row, column, paint, 8);
  if (!tile) return;
  const part = 2 ** tile.more; // a coarser tile covers part × part of this level's
  const [top, left] = [(row % part) * (SIZE / part), (column % part) * (SIZE / part)];
  const width = Math.min(SIZE / part, tile.canvas.width - left);
  const height = Math.min(SIZE / part, tile.canvas.height - top);
  if (width <= 0 || height <= 0) return;
  const cell = [position.width * 2 ** across, position.height * 2 ** up];
  const x = margins.left + position.x + column * SIZE * cell[0];
  const y = margins.top + position.y + row * SIZE * cell[1];
  context.drawImage(tile.canvas, left, top, width, height, x, y, width * part * cell[0], height * part * cell[1]);
}
