// Lines from the tokens that look, on the left, to what they look at, on the right; stronger the larger the weight.
//
//   const lines = createArcs(element, {
//     tables: [{ head, color, dashed, weights }],   // one for each head that is drawn
//     rows, columns, scale, threshold, picked, name, dark, language, onpick({ row }) or onpick({ column }),
//   });
//   lines.isolateHead(2);   // the others fade; undefined shows all

import { make, makeSvg } from "./controls.js";
import { countLabels, labelAt, shorten } from "./labels.js";
import { computeAmount, createLocalSource } from "./source.js";
import { createFormatter } from "./words.js";

const STEP = 20; // pixels from a token to the next
const WIDTH = 560;
const EDGE = 180; // room for tokens on either side
const MOST = 3000; // lines; the thinnest are left out
const FAINTEST = 0.02; // thinner lines cannot be seen
const BAR = 12; // pixels of a head's bar beside a token, at most

export function createArcs(element, options) {
  return new Arcs(element, options);
}

class Arcs {
  constructor(element, options) {
    this.state = { scale: "none", threshold: 0, name: "" };
    this.picture = makeSvg("svg", { class: "regard-arcs", role: "img" });
    element.append(make("div", { className: "regard-arcs-frame" }, this.picture));
    this.picture.addEventListener("pointerover", ({ target }) => this.isolate(readPlace(target)));
    this.picture.addEventListener("pointerleave", () => this.isolate(undefined));
    this.picture.addEventListener("click", ({ target }) => {
      const place = readPlace(target);
      if (place) this.state.onpick?.(place);
    });
    this.update(options);
  }

  update(changes = {}) {
    Object.assign(this.state, changes);
    const { state, picture } = this;
    const [rows, columns] = [countLabels(state.rows), countLabels(state.columns)];
    picture.setAttribute("viewBox", `0 0 ${WIDTH} ${Math.max(rows, columns) * STEP + 10}`);
    picture.setAttribute("aria-label", createFormatter(state.language)("arcs", { name: state.name }));
    this.lines = selectLines(state, rows, columns).map((line) => ({ ...line, path: drawLine(line) }));
    this.bars = makeSvg("g");
    const left = Array.from({ length: rows }, (_, row) => this.drawToken("row", row, EDGE - 8, "end"));
    const right = Array.from({ length: columns }, (_, column) => this.drawToken("column", column, WIDTH - EDGE + 8, "start"));
    picture.replaceChildren(makeSvg("g", {}, ...this.lines.map(({ path }) => path)), this.bars, ...left, ...right);
    this.light(state.picked, undefined);
  }

  drawToken(axis, place, x, anchor) {
    const { state } = this;
    const label = `\u2068${shorten(labelAt(axis === "row" ? state.rows : state.columns, place), 22)}\u2069`;
    const chosen = state.picked?.[axis] === place;
    return makeSvg("text", {
      x, y: (place + 0.5) * STEP + 9, "text-anchor": anchor, [`data-${axis}`]: place, class: chosen ? "regard-asking chosen" : "regard-asking",
    }, label);
  }

  isolate(place) {
    this.light(place ?? this.state.picked, undefined);
  }

  isolateHead(head) {
    this.light(this.state.picked, head);
  }

  /** Lines of one token or one head stay, others fade; what a token looks at gets a bar for each head. */
  light(place, head) {
    const lit = (line) => (head === undefined || line.head === head) &&
      (place?.row === undefined || line.row === place.row) && (place?.column === undefined || line.column === place.column);
    for (const line of this.lines) line.path.setAttribute("opacity", lit(line) ? line.strength : line.strength * 0.06);
    const bars = place?.row === undefined && place?.column === undefined ? [] : this.lines.filter(lit);
    this.bars.replaceChildren(...bars.map((line) => this.drawBar(line, place)));
  }

  // Beside the other end of each line.
  drawBar({ row, column, head, color, strength }, place) {
    const heads = this.state.tables.map((table) => table.head);
    const width = Math.min(BAR, (EDGE - 12) / heads.length);
    const right = place.row !== undefined;
    const shift = heads.indexOf(head) * width;
    const x = right ? WIDTH - EDGE + 4 + shift : EDGE - 4 - shift - width;
    const y = ((right ? column : row) + 0.5) * STEP - 4;
    return makeSvg("rect", { x, y, width, height: STEP - 2, fill: color, opacity: 0.75 * strength, "pointer-events": "none" });
  }
}

function readPlace(target) {
  const { row, column } = target.dataset ?? {};
  if (row !== undefined) return { row: Number(row) };
  return column === undefined ? undefined : { column: Number(column) };
}

function drawLine({ row, column, amount, strength, color, dashed }) {
  const [from, to] = [(row + 0.5) * STEP + 5, (column + 0.5) * STEP + 5];
  const middle = WIDTH / 2;
  return makeSvg("path", {
    d: `M${EDGE},${from} C${middle},${from} ${middle},${to} ${WIDTH - EDGE},${to}`,
    fill: "none", stroke: color, opacity: strength, "stroke-width": 0.8 + 2 * amount, ...(dashed && { "stroke-dasharray": "5 3" }),
  });
}

// The strongest lines of all heads, drawn last so that they lie on top.
function selectLines({ tables, scale, threshold }, rows, columns) {
  const lines = [];
  for (const { head, color, dashed, weights } of tables) {
    const source = createLocalSource(weights, rows, columns);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const value = Math.abs(weights[row * columns + column]);
        const amount = Math.min(1, computeAmount(value, scale, source.largest, source.largestOfRow(row)));
        if (amount >= Math.max(threshold, FAINTEST)) lines.push({ head, color, dashed, row, column, amount, strength: Math.max(0.05, amount) });
      }
    }
  }
  return lines.sort((one, other) => one.amount - other.amount).slice(-MOST);
}
