// Lines from the tokens that look, on the left, to what they look at, on the right; as thick as the weight.
//
//   const lines = createArcs(element, { weights, rows, columns, scale, threshold, chosen, name, dark, language, onchoose(row) });

import { buildPalette, isDark, toCss } from "./colors.js";
import { makeSvg } from "./controls.js";
import { countLabels, labelAt, shorten } from "./labels.js";
import { computeAmount, createLocalSource } from "./source.js";
import { createFormatter } from "./words.js";

const STEP = 20; // pixels from a token to the next
const WIDTH = 520;
const EDGE = 170; // room for tokens on either side
const MOST = 3000; // lines; the thinnest are left out
const FAINTEST = 0.02; // thinner lines cannot be seen

export function createArcs(element, options) {
  const state = { scale: "none", threshold: 0, name: "", ...options };
  const picture = makeSvg("svg", { class: "regard-arcs", role: "img" });
  element.append(picture);

  function update(changes = {}) {
    Object.assign(state, changes);
    const [rows, columns] = [countLabels(state.rows), countLabels(state.columns)];
    const height = Math.max(rows, columns) * STEP + 10;
    picture.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    picture.setAttribute("aria-label", createFormatter(state.language)("arcs", { name: state.name }));
    const colors = buildPalette("weights", state.dark ?? isDark());
    const lines = selectLines(state, rows, columns).map((line) => drawLine(line, colors));
    const left = Array.from({ length: rows }, (_, row) => drawToken(state.rows, row, EDGE - 8, "end", true));
    const edge = WIDTH - EDGE + 8;
    const right = Array.from({ length: columns }, (_, column) => drawToken(state.columns, column, edge, "start", false));
    picture.replaceChildren(...lines, ...left, ...right);
  }

  function drawLine({ row, column, amount }, colors) {
    const [from, to] = [(row + 0.5) * STEP + 5, (column + 0.5) * STEP + 5];
    const middle = WIDTH / 2;
    return makeSvg("path", {
      d: `M${EDGE},${from} C${middle},${from} ${middle},${to} ${WIDTH - EDGE},${to}`,
      fill: "none",
      stroke: toCss(colors, 0.35 + 0.65 * amount),
      "stroke-width": Math.max(0.5, 4 * amount),
      opacity: state.chosen === undefined || state.chosen === row ? 1 : 0.12,
    });
  }

  function drawToken(labels, place, x, anchor, isQuery) {
    const label = `\u2068${shorten(labelAt(labels, place), 22)}\u2069`;
    const text = makeSvg("text", { x, y: (place + 0.5) * STEP + 9, "text-anchor": anchor }, label);
    if (isQuery) {
      text.setAttribute("class", place === state.chosen ? "regard-asking chosen" : "regard-asking");
      text.addEventListener("click", () => state.onchoose?.(place));
    }
    return text;
  }

  update();
  return { update };
}

// The thickest lines, drawn last so that they lie on top.
function selectLines({ weights, scale, threshold }, rows, columns) {
  const source = createLocalSource(weights, rows, columns);
  const lines = [];
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const value = Math.abs(weights[row * columns + column]);
      const amount = Math.min(1, computeAmount(value, scale, source.largest, source.largestOfRow(row)));
      if (amount >= Math.max(threshold, FAINTEST)) lines.push({ row, column, amount });
    }
  }
  return lines.sort((one, other) => one.amount - other.amount).slice(-MOST);
}
