// What is shown, as a file: PNG, SVG, CSV, JSON.

import { buildPalette, toCss } from "./colors.js";
import { countLabels, labelAt } from "./labels.js";
import { computeAmount } from "./source.js";
import { readLine } from "./tables.js";

export const MOST = 250_000; // weights in a file of text
const CELL = 18;
const EDGE = 150;

export const FORMATS = { PNG: writePng, SVG: writeSvg, CSV: writeCsv, JSON: writeJson };

/** `shown` has map, source, rows, columns (labels or counts), name, scale, threshold, kind. */
function writePng({ map }) {
  const { canvas } = map;
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d");
  context.fillStyle = getComputedStyle(canvas).backgroundColor;
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  return new Promise((done) => { copy.toBlob(done, "image/png"); });
}

function writeSvg(shown) {
  const { source, rows, columns, scale, threshold, kind } = shown;
  const colors = buildPalette(kind);
  const parts = [];
  for (let row = 0; row < source.rows; row += 1) {
    for (let column = 0; column < source.columns; column += 1) {
      const difference = kind === "difference";
      const amount = computeAmount(source.weight(row, column), scale, source.largest, source.largestOfRow(row), difference);
      if (!difference && (amount < threshold || amount === 0)) continue;
      const place = `x="${EDGE + column * CELL}" y="${EDGE + row * CELL}"`;
      parts.push(`<rect ${place} width="${CELL}" height="${CELL}" fill="${toCss(colors, amount)}"/>`);
    }
  }
  const each = (labels, text) => Array.from({ length: countLabels(labels) }, (_, place) => text(escapeXml(labelAt(labels, place)), place));
  parts.push(...each(rows, (label, row) => `<text x="${EDGE - 6}" y="${EDGE + (row + 0.7) * CELL}" text-anchor="end">${label}</text>`));
  parts.push(...each(columns, (label, column) => {
    const place = `${EDGE + (column + 0.7) * CELL} ${EDGE - 6}`;
    return `<text transform="translate(${place}) rotate(-90)">${label}</text>`;
  }));
  const [width, height] = [EDGE + source.columns * CELL + 8, EDGE + source.rows * CELL + 8];
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const style = 'font-family="system-ui, Noto Sans CJK SC, sans-serif" font-size="12"';
  const title = `<title>${escapeXml(shown.name)}</title><rect width="100%" height="100%" fill="#fff"/>`;
  return new Blob([`${head} ${style}>${title}${parts.join("")}</svg>\n`], { type: "image/svg+xml" });
}

function escapeXml(text) {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.codePointAt(0)};`);
}

function writeCsv({ source, rows, columns }) {
  const names = (labels) => Array.from({ length: countLabels(labels) }, (_, place) => quoteCsv(labelAt(labels, place)));
  const lines = [["", ...names(columns)].join(",")];
  for (const [row, name] of names(rows).entries()) lines.push([name, ...readLine(source, "row", row)].join(","));
  return new Blob([`\uFEFF${lines.join("\r\n")}\r\n`], { type: "text/csv;charset=utf-8" });
}

// A label must stay a text: a spreadsheet would compute one that begins like a formula.
function quoteCsv(text) {
  return `"${(/^[=@+\-]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

function writeJson({ source, rows, columns, name }) {
  const names = (labels) => (typeof labels === "number" ? null : labels);
  const weights = Array.from({ length: source.rows }, (_, row) => [...readLine(source, "row", row)]);
  const text = JSON.stringify({ format: "regard-table", version: 1, name, queries: names(rows), keys: names(columns), weights });
  return new Blob([`${text}\n`], { type: "application/json" });
}

/** Lets the browser save it. */
export async function saveFile(format, shown) {
  const content = await FORMATS[format](shown);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = `${shown.name.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "attention"}.${format.toLowerCase()}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** How many weights would be written; all of a large table cannot be. */
export function countCells(source) {
  return source.rows * source.columns;
}

