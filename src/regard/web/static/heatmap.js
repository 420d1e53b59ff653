// A heat map on a canvas: queries down, keys across; zoom, pan, exact weights under the pointer and by keyboard.
//
//   const map = createHeatMap(element, {
//     weights,              // Float32Array, row by row; or `source` (source.js) for tables too large to be sent
//     rows, columns,        // labels, or how many there are
//     scale: "none",        // colors: "none" as they are (0 … 1), "row" by the row's largest, "global" by the largest
//     threshold: 0,         // what is drawn as nothing: less than this share of the scale
//     kind: "weights",      // or "difference": from less to more
//     name, language, dark, height,
//     onhover({ row, column, weight }), onchoose({ row, column }), onview({ row, column, width, height }),
//   });
//   map.update({ threshold: 0.1 });  map.fit();  map.zoom(2);  map.view = …;  map.canvas;

import { isDark } from "./colors.js";
import { make } from "./controls.js";
import { LARGEST_CELL, mapFrame } from "./frame.js";
import { listen } from "./gestures.js";
import { countLabels, formatExactly, labelAt } from "./labels.js";
import { createLocalSource } from "./source.js";
import { createPaint, createTileStore, drawTiles } from "./tiles.js";
import { chooseLanguage, createFormatter } from "./words.js";

const DEFAULTS = { scale: "none", threshold: 0, kind: "weights", name: "", height: 0 };
const DEEPEST = 96; // pixels of a cell, zoomed in

export function createHeatMap(element, options) {
  return new HeatMap(element, options);
}

class HeatMap {
  constructor(element, options) {
    this.element = element;
    this.options = { ...DEFAULTS };
    this.cursor = undefined;
    this.chosen = undefined;
    this.build();
    this.update(options);
    new ResizeObserver(() => this.resize()).observe(this.frame);
  }

  build() {
    const map = this; // for scripts that start from the page
    this.canvas = make("canvas", { className: "regard-heatmap-canvas", tabIndex: 0, role: "application", map });
    this.tip = make("div", { className: "regard-tip", hidden: true });
    this.frame = make("div", { className: "regard-heatmap" }, this.canvas, this.tip);
    this.readout = make("p", { className: "regard-readout", role: "status" });
    this.element.append(this.frame, this.readout);
    listen(this.canvas, {
      hover: (x, y) => this.moveCursor(this.cellAt(x, y), x, y),
      leave: () => this.moveCursor(undefined),
      choose: (x, y) => this.choose(this.cellAt(x, y)),
      pan: (x, y) => this.move(x, y),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      key: (name, shift) => this.handleKey(name, shift),
    });
  }

  /** Takes other weights or other options; the view stays where it is while the table has the same size. */
  update(changes = {}) {
    Object.assign(this.options, changes);
    const { rows, columns } = this.options;
    if (changes.weights) this.setSource(createLocalSource(changes.weights, countLabels(rows), countLabels(columns)));
    else if (changes.source) this.setSource(changes.source);
    const { scale, threshold, kind } = this.options;
    this.dark = this.options.dark ?? isDark();
    this.language = chooseLanguage(this.options.language);
    this.say = createFormatter(this.language);
    this.paint = createPaint({ scale, threshold, kind, dark: this.dark });
    const names = { name: this.options.name, rows: this.source.rows, columns: this.source.columns };
    this.canvas.setAttribute("aria-label", `${this.say("heatMap", names)}. ${this.say("heatMapHelp")}`);
    if (this.cursor && (this.cursor.row >= this.source.rows || this.cursor.column >= this.source.columns)) {
      this.cursor = undefined;
    }
    this.resize();
    if (this.cursor) this.showWeight();
  }

  setSource(source) {
    const sameSize = this.source?.rows === source.rows && this.source?.columns === source.columns;
    this.source = source;
    this.tiles = createTileStore(source, () => this.redraw());
    if (!sameSize) this.view = undefined;
  }

  resize() {
    const width = Math.max(120, this.frame.clientWidth);
    const { rows, columns } = this.source;
    const context = this.canvas.getContext("2d");
    this.margins = mapFrame.measureMargins(context, this.options, width);
    const across = width - this.margins.left - 1;
    const cell = Math.min(LARGEST_CELL, across / Math.max(1, columns));
    const wanted = Math.max(cell, Math.min(24, 400 / Math.max(1, rows))) * rows;
    const room = this.options.height || Math.max(160, Math.min(window.innerHeight * 0.7, wanted));
    this.plot = { width: Math.max(1, across), height: Math.max(1, Math.min(room, Math.max(wanted, 24))) };
    this.plot.height = Math.max(24, Math.min(this.plot.height, rows * this.computeFit().height)); // no blank below the rows
    this.pixels = window.devicePixelRatio || 1;
    const height = this.margins.top + this.plot.height + 8; // the last label may stand out a little
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * this.pixels);
    this.canvas.height = Math.round(height * this.pixels);
    if (!this.position || this.whole) this.fit();
    else this.move(0, 0);
  }

  /** All of the table in sight. */
  fit() {
    this.position = { x: 0, y: 0, ...this.computeFit() };
    this.whole = true; // until somebody zooms, it stays so when the page changes its width
    this.notifyView();
  }

  // Cells are square where that wastes little; a few queries over thousands of frames are not.
  computeFit() {
    const { rows, columns } = this.source;
    const width = Math.min(LARGEST_CELL, this.plot.width / Math.max(1, columns));
    const height = Math.min(LARGEST_CELL, this.plot.height / Math.max(1, rows));
    const least = Math.min(width, height);
    return Math.max(width, height) > 2.5 * least ? { width, height } : { width: least, height: least };
  }

  /** Where the view is: the first row and column in sight, and the pixels of a cell; undefined shows all. */
  get view() {
    const { x, y, width, height } = this.position;
    return { column: -x / width, row: -y / height, width, height };
  }

  set view(view) {
    const { row, column, width, height } = view ?? {};
    this.whole = !view;
    this.position = view && { x: -column * width, y: -row * height, width, height };
    if (this.plot && view) this.move(0, 0);
  }

  zoom(factor, x = this.margins.left + this.plot.width / 2, y = this.margins.top + this.plot.height / 2) {
    const old = this.position;
    this.whole = false;
    const least = this.computeFit();
    const most = Math.max(DEEPEST, least.width, least.height);
    const bounded = (size, low) => Math.min(most, Math.max(low, size * factor));
    const width = bounded(old.width, least.width);
    const height = bounded(old.height, least.height);
    const [left, top] = [x - this.margins.left, y - this.margins.top];
    this.position = {
      width, height,
      x: left - ((left - old.x) * width) / old.width,
      y: top - ((top - old.y) * height) / old.height,
    };
    this.move(0, 0);
  }

  move(x, y) {
    const { position, plot, source } = this;
    const held = (at, size, cells, room) => Math.min(0, Math.max(at, Math.min(0, room - cells * size)));
    position.x = held(position.x + x, position.width, source.columns, plot.width);
    position.y = held(position.y + y, position.height, source.rows, plot.height);
    this.notifyView();
  }

  notifyView() {
    this.options.onview?.(this.view);
    this.redraw();
  }

  redraw() {
    this.frameAsked ??= requestAnimationFrame(() => {
      this.frameAsked = undefined;
      this.draw();
    });
  }

  draw() {
    const context = this.canvas.getContext("2d");
    context.setTransform(this.pixels, 0, 0, this.pixels, 0, 0);
    mapFrame.clear(context, this);
    context.save();
    context.beginPath();
    context.rect(this.margins.left, this.margins.top, this.plot.width + 1, this.plot.height + 1);
    context.clip();
    drawTiles(context, this);
    mapFrame.drawLines(context, this);
    context.restore();
    mapFrame.drawLabels(context, this);
    mapFrame.drawCursor(context, this);
  }

  /** The cell at a place of the canvas, or undefined. */
  cellAt(x, y) {
    const { left, top } = this.margins;
    const column = Math.floor((x - left - this.position.x) / this.position.width);
    const row = Math.floor((y - top - this.position.y) / this.position.height);
    const outside = x < left || y < top || column < 0 || row < 0;
    return outside || column >= this.source.columns || row >= this.source.rows ? undefined : { row, column };
  }

  /** The middle of a cell on the canvas: where a pointer would be. */
  centerOf(row, column) {
    const { x, y, width, height } = this.position;
    return [this.margins.left + x + (column + 0.5) * width, this.margins.top + y + (row + 0.5) * height];
  }

  moveCursor(cell, x, y) {
    const same = cell?.row === this.cursor?.row && cell?.column === this.cursor?.column;
    this.cursor = cell;
    this.tip.hidden = !cell;
    if (cell && !same) this.showWeight();
    if (cell) this.placeTip(x, y);
    if (!same) this.redraw();
  }

  placeTip(x, y) {
    const room = this.frame.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(room, x + 14))}px`;
    this.tip.style.top = `${y + 18}px`;
  }

  async showWeight() {
    const { row, column } = this.cursor;
    const answer = this.source.weight(row, column);
    const late = typeof answer?.then === "function";
    if (late) this.tellWeight(row, column, "…"); // never the last cell's weight at another cell
    const weight = late ? await answer.catch(() => undefined) : answer;
    if (weight === undefined || this.cursor?.row !== row || this.cursor?.column !== column) return;
    this.tellWeight(row, column, formatExactly(weight));
    this.options.onhover?.({ row, column, weight });
  }

  tellWeight(row, column, weight) {
    const names = { row: labelAt(this.options.rows, row), column: labelAt(this.options.columns, column) };
    const text = this.say("cell", { ...names, weight });
    this.tip.textContent = text;
    this.readout.textContent = text;
  }

  choose(cell) {
    this.chosen = cell;
    this.redraw();
    if (cell) this.options.onchoose?.(cell);
  }

  handleKey(name, shift) {
    const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[name] ?? [0, 0];
    if (x || y) shift ? this.move(-x * 60, -y * 60) : this.stepCursor(x, y);
    else if (name === "+" || name === "=") this.zoom(1.5);
    else if (name === "-") this.zoom(1 / 1.5);
    else if (name === "0") this.fit();
    else if (name === "Enter" && this.cursor) this.choose(this.cursor);
    else if (name === "Escape") this.moveCursor(undefined);
    else return false;
    return true;
  }

  stepCursor(x, y) {
    const held = (value, most) => Math.min(most - 1, Math.max(0, value));
    const from = this.cursor ?? { row: -y, column: -x };
    const cell = { row: held(from.row + y, this.source.rows), column: held(from.column + x, this.source.columns) };
    if (cell.row < 0 || cell.column < 0) return;
    const [left, top] = this.centerOf(cell.row, cell.column);
    const { margins, plot } = this;
    const inward = (at, low, high) => (at < low ? low - at + 20 : at > high ? high - at - 20 : 0);
    this.move(inward(left, margins.left, margins.left + plot.width), inward(top, margins.top, margins.top + plot.height));
    this.moveCursor(cell, ...this.centerOf(cell.row, cell.column));
  }
}
