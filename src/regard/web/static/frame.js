// What surrounds the cells of a heat map: labels, lines, the cursor.

import { count, labelAt, shortened } from "./labels.js";

const FONT = '12px system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';
const LINE = 14; // pixels from one label to the next
const SAMPLE = 400; // labels that are measured: enough to know how wide they are

export const drawFrame = { margins, clear, lines, labels, cursor };

/** How much room the labels need: to the left of the rows, above the columns. */
function margins(context, { rows, columns }, width) {
  context.font = FONT;
  const left = Math.min(widest(context, rows, 24), width * 0.35, 170) + 10;
  return { left: Math.ceil(left), top: Math.ceil(Math.min(widest(context, columns, 18), 130)) + 10 };
}

function widest(context, labels, most) {
  let width = LINE;
  for (let place = 0; place < Math.min(SAMPLE, count(labels)); place += 1) {
    width = Math.max(width, context.measureText(shortened(labelAt(labels, place), most)).width);
  }
  return typeof labels === "number" ? context.measureText(String(labels)).width : width;
}

function clear(context, { canvas, pixels }) {
  context.clearRect(0, 0, canvas.width / pixels, canvas.height / pixels);
  context.font = FONT;
  context.direction = "ltr"; // the map's own order; a token keeps its own direction within
}

/** Lines between cells, where cells are large enough for lines to help. */
function lines(context, { position, plot, margins: { left, top }, source, dark }) {
  const right = Math.min(plot.width, position.x + source.columns * position.width);
  const bottom = Math.min(plot.height, position.y + source.rows * position.height);
  context.strokeStyle = dark ? "rgb(255 255 255 / 0.09)" : "rgb(0 0 0 / 0.08)";
  context.lineWidth = 1;
  context.beginPath();
  for (const place of starts(position.x, position.width, plot.width, source.columns)) {
    context.moveTo(Math.round(left + place) + 0.5, top);
    context.lineTo(Math.round(left + place) + 0.5, top + bottom);
  }
  for (const place of starts(position.y, position.height, plot.height, source.rows)) {
    context.moveTo(left, Math.round(top + place) + 0.5);
    context.lineTo(left + right, Math.round(top + place) + 0.5);
  }
  context.stroke();
}

function* starts(offset, size, room, cells) {
  if (size < 7) return;
  for (let cell = Math.max(0, Math.floor(-offset / size)); cell <= cells && offset + cell * size <= room; cell += 1) {
    yield offset + cell * size;
  }
}

/** The labels in sight; where they would overlap, every second, fifth, tenth … one. */
function labels(context, map) {
  const { options, position, plot, margins: { left, top }, cursor, chosen } = map;
  const ink = map.dark ? "#e6e6e6" : "#1c1c1c";
  const pale = map.dark ? "#9a9a9a" : "#6a6a6a";
  context.textBaseline = "middle";
  for (const row of shown(position.y, position.height, plot.height, options.rows)) {
    const y = top + position.y + (row + 0.5) * position.height;
    context.fillStyle = row === cursor?.row || row === chosen?.row ? ink : pale;
    context.textAlign = "right";
    write(context, fitting(context, labelAt(options.rows, row), left - 10), left - 6, y);
  }
  const columns = [...shown(position.x, position.width, plot.width, options.columns)];
  const texts = columns.map((column) => fitting(context, labelAt(options.columns, column), top - 10));
  const level = texts.every((text) => context.measureText(text).width <= position.width - 4);
  columns.forEach((column, place) => {
    const x = left + position.x + (column + 0.5) * position.width;
    context.fillStyle = column === cursor?.column || column === chosen?.column ? ink : pale;
    above(context, texts[place], x, top - 6, level);
  });
}

function above(context, text, x, y, level) {
  context.save();
  context.translate(x, y);
  if (!level) context.rotate(-Math.PI / 2);
  context.textAlign = level ? "center" : "left";
  write(context, text, 0, level ? -5 : 0);
  context.restore();
}

// Isolated, so that a token of Arabic or Hebrew does not turn its neighbors round.
function write(context, text, x, y) {
  context.fillText(`\u2068${text}\u2069`, x, y);
}

function fitting(context, text, room) {
  for (let most = 32; most > 1; most -= 1) {
    const short = shortened(text, most);
    if (context.measureText(short).width <= room) return short;
  }
  return "…";
}

function* shown(offset, size, room, labels) {
  const step = size >= LINE ? 1 : nice(LINE / size);
  const shift = typeof labels === "number" ? -1 : 0; // numbers count from 1, and the round ones are shown
  const first = Math.max(0, Math.floor(-offset / size));
  const last = Math.min(count(labels) - 1, (room - offset) / size - 0.5);
  for (let cell = Math.ceil((first - shift) / step) * step + shift; cell <= last; cell += step) {
    if (cell >= 0 && offset + (cell + 0.5) * size >= 0) yield cell;
  }
}

function nice(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= least);
}

/** A frame around the cell under the pointer, and a paler one around the chosen row. */
function cursor(context, { position, plot, margins: { left, top }, source, cursor: cell, chosen, dark }) {
  context.strokeStyle = dark ? "#ffb454" : "#c2410c";
  const width = Math.min(plot.width, source.columns * position.width + position.x);
  const outlined = (x, y, across, down, line) => {
    context.lineWidth = line;
    context.strokeRect(Math.round(left + x) + 0.5, Math.round(top + y) + 0.5, Math.max(2, across), Math.max(2, down));
  };
  if (chosen) outlined(0, position.y + chosen.row * position.height, width, position.height, 1);
  if (!cell) return;
  const [x, y] = [position.x + cell.column * position.width, position.y + cell.row * position.height];
  if (x > -position.width && y > -position.height && x < plot.width && y < plot.height) {
    outlined(x, y, position.width, position.height, 2);
  }
}
