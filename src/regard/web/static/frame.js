// What surrounds the cells of a heat map: labels, lines, the cursor.

import { countLabels, labelAt, roundStep, shorten } from "./labels.js";

const FONT = '12px system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';
export const LARGEST_CELL = 56; // pixels, before anyone zooms
const LINE = 14; // pixels from one label to the next
const SAMPLE = 400; // labels that are measured: enough to know how wide they are

export const mapFrame = { measureMargins, clear, drawLines, drawLabels, drawCursor };

/** How much room the labels need: to the left of the rows, above the columns. */
function measureMargins(context, { rows, columns }, width) {
  context.font = FONT;
  const left = Math.ceil(Math.min(measureWidest(context, rows, 24), width * 0.35, 170) + 10);
  const widest = measureWidest(context, columns, 18);
  const roomy = countLabels(rows) * LARGEST_CELL <= window.innerHeight * 0.7; // then cells are as wide as they can be
  const level = roomy && widest <= Math.min(LARGEST_CELL, (width - left) / Math.max(1, countLabels(columns))) - 4;
  return { left, top: level ? LINE + 8 : Math.ceil(Math.min(widest, 130)) + 10 };
}

function measureWidest(context, labels, most) {
  let width = LINE;
  for (let place = 0; place < Math.min(SAMPLE, countLabels(labels)); place += 1) {
    width = Math.max(width, context.measureText(shorten(labelAt(labels, place), most)).width);
  }
  return typeof labels === "number" ? context.measureText(String(labels)).width : width;
}

function clear(context, { canvas, pixels }) {
  context.clearRect(0, 0, canvas.width / pixels, canvas.height / pixels);
  context.font = FONT;
  context.direction = "ltr"; // the map's own order; a token keeps its own direction within
}

/** Lines between cells, if cells are large enough for lines to help. */
function drawLines(context, { position, plot, margins: { left, top }, source, dark }) {
  const right = Math.min(plot.width, position.x + source.columns * position.width);
  const bottom = Math.min(plot.height, position.y + source.rows * position.height);
  context.strokeStyle = dark ? "rgb(255 255 255 / 0.09)" : "rgb(0 0 0 / 0.08)";
  context.lineWidth = 1;
  context.beginPath();
  for (const place of iterateStarts(position.x, position.width, plot.width, source.columns)) {
    context.moveTo(Math.round(left + place) + 0.5, top);
    context.lineTo(Math.round(left + place) + 0.5, top + bottom);
  }
  for (const place of iterateStarts(position.y, position.height, plot.height, source.rows)) {
    context.moveTo(left, Math.round(top + place) + 0.5);
    context.lineTo(left + right, Math.round(top + place) + 0.5);
  }
  context.stroke();
}

function* iterateStarts(offset, size, room, cells) {
  if (size < 7) return;
  for (let cell = Math.max(0, Math.floor(-offset / size)); cell <= cells && offset + cell * size <= room; cell += 1) {
    yield offset + cell * size;
  }
}

/** The labels in sight; if they would overlap, every second, fifth, tenth … one. */
function drawLabels(context, map) {
  const { options, position, plot, margins: { left, top }, cursor, chosen } = map;
  const ink = map.dark ? "#e6e6e6" : "#1c1c1c";
  const pale = map.dark ? "#9a9a9a" : "#6a6a6a";
  context.textBaseline = "middle";
  for (const row of iterateLabels(position.y, position.height, plot.height, options.rows)) {
    const y = top + position.y + (row + 0.5) * position.height;
    context.fillStyle = row === cursor?.row || row === chosen?.row ? ink : pale;
    context.textAlign = "right";
    writeText(context, fitText(context, labelAt(options.rows, row), left - 10), left - 6, y);
  }
  const columns = [...iterateLabels(position.x, position.width, plot.width, options.columns)];
  const names = columns.map((column) => labelAt(options.columns, column));
  const level = names.every((name) => context.measureText(name).width <= position.width - 4);
  const texts = level ? names : names.map((name) => fitText(context, name, top - 10));
  columns.forEach((column, place) => {
    const x = left + position.x + (column + 0.5) * position.width;
    context.fillStyle = column === cursor?.column || column === chosen?.column ? ink : pale;
    writeAbove(context, texts[place], x, top - 6, level);
  });
}

function writeAbove(context, text, x, y, level) {
  context.save();
  context.translate(x, y);
  if (!level) context.rotate(-Math.PI / 2);
  context.textAlign = level ? "center" : "left";
  writeText(context, text, 0, level ? -5 : 0);
  context.restore();
}

// Isolated, so that a token of Arabic or Hebrew does not turn its neighbors round.
function writeText(context, text, x, y) {
  context.fillText(`\u2068${text}\u2069`, x, y);
}

function fitText(context, text, room) {
  for (let most = 32; most > 1; most -= 1) {
    const short = shorten(text, most);
    if (context.measureText(short).width <= room) return short;
  }
  return "…";
}

function* iterateLabels(offset, size, room, labels) {
  const step = size >= LINE ? 1 : roundStep(LINE / size);
  const first = Math.max(0, Math.floor(-offset / size));
  const last = Math.min(countLabels(labels) - 1, (room - offset) / size - 0.5);
  for (let cell = Math.ceil(first / step) * step; cell <= last; cell += step) {
    if (cell >= 0 && offset + (cell + 0.5) * size >= 0) yield cell;
  }
}

/** A frame around the cell under the pointer, and thinner ones around the chosen row and column. */
function drawCursor(context, { position, plot, margins: { left, top }, source, cursor: cell, chosen, dark }) {
  context.strokeStyle = dark ? "#ffb454" : "#c2410c";
  const width = Math.min(plot.width, source.columns * position.width + position.x);
  const outline = (x, y, across, down, line) => {
    context.lineWidth = line;
    context.strokeRect(Math.round(left + x) + 0.5, Math.round(top + y) + 0.5, Math.max(2, across), Math.max(2, down));
  };
  const tall = Math.min(plot.height, source.rows * position.height + position.y);
  if (chosen?.row !== undefined) outline(0, position.y + chosen.row * position.height, width, position.height, 1);
  if (chosen?.column !== undefined) outline(position.x + chosen.column * position.width, 0, position.width, tall, 1);
  if (!cell) return;
  const [x, y] = [position.x + cell.column * position.width, position.y + cell.row * position.height];
  if (x > -position.width && y > -position.height && x < plot.width && y < plot.height) {
    outline(x, y, position.width, position.height, 2);
  }
}
