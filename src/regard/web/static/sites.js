// Sites, the attentions of a recording, as a panel wants them:
//   { name, kind, heads, rows, columns, across, step, measures, whole, labels(), source(head), thumbnails(),
//     vectors, explain(head, row, column) }: the width of the vectors that were kept, or 0; and explain(…), which says what made a weight: explanation.js. The functions answer with promises: labels are { rows, columns }, tokens or how many there are; sources are as in
// source.js. `whole` says that all weights are here or come at once. Head −1 is the mean of all, −2 its alignment, −3 a rollout.

import { explainPacked } from "./explanation.js";
import { averageHeads, createLocalSource } from "./source.js";
import { unpackNumbers } from "./tables.js";

export const MEAN = -1;
export const ALIGNMENT = -2; // each query's largest weight alone
export const ROLLOUT = -3; // of all layers up to this one: rollout.js

/** The sites of one chapter of what regard.inspect.draw.report writes. */
export function createPackedSites({ labels, tables, vectors = [], known = new Map() }, { sites }) {
  const unpack = (list, place) => {
    if (!known.has(list[place])) known.set(list[place], unpackNumbers(list[place]));
    return known.get(list[place]);
  };
  return sites.map((site) => {
    const { rows, columns, height, width, table } = site;
    const tokens = { rows: rows === null ? height : labels[rows], columns: columns === null ? width : labels[columns] };
    const size = { rows: height, columns: width, across: rows !== columns || height !== width, whole: true, vectors: site.origin?.shapes.dim ?? 0 };
    return createSite({ ...site, ...size, labels: async () => tokens }, () => unpack(tables, table), (place) => unpack(vectors, place));
  });
}

/** A site whose weights come all at once from `load()`, heads × rows × columns of them; `read` gives the vectors of its origin. */
export function createSite(site, load, read) {
  const once = new Map();
  const source = (head) => {
    if (!once.has(head)) {
      once.set(head, load().then((weights) => createHeadSource(weights, site, head)).catch((error) => { once.delete(head); throw error; }));
    }
    return once.get(head);
  };
  const explain = async (head, row, column) => explainPacked(await source(head), site, read, { head, row, column });
  const thumbnails = async () => ({ heads: await loadHeads(site.heads, source), mean: site.heads > 1 ? await source(MEAN) : undefined });
  return { explain, ...site, source, thumbnails };
}

function loadHeads(count, load) {
  return Promise.all(Array.from({ length: count }, (_, head) => load(head)));
}

function createHeadSource(weights, { heads, rows, columns }, head) {
  const cells = rows * columns;
  if (head >= 0) return createLocalSource(weights.subarray(head * cells, (head + 1) * cells), rows, columns);
  const mean = averageHeads(weights, heads, cells);
  return createLocalSource(head === ALIGNMENT ? keepLargest(mean, rows, columns) : mean, rows, columns);
}

function keepLargest(values, rows, columns) {
  const kept = new Float32Array(values.length);
  for (let row = 0; row < rows; row += 1) {
    let best = row * columns;
    for (let cell = best; cell < (row + 1) * columns; cell += 1) if (values[cell] > values[best]) best = cell;
    if (values[best] > 0) kept[best] = 1;
  }
  return kept;
}

/** One site made of weights that are here: what a search says while it goes on. */
export function createLocalSite(name, weights, rows, columns) {
  const size = { heads: 1, rows: rows.length, columns: columns.length, across: true, whole: true };
  const numbers = Float32Array.from(weights.flat());
  return createSite({ name, kind: "weights", ...size, labels: async () => ({ rows, columns }) }, async () => numbers);
}

/** The site that says the most: the last that looks from one text at another; regard.inspect.display.picture does so too. */
export function findFirstSite(sites) {
  return Math.max(0, sites.findLastIndex(({ across }) => across));
}

/** Names without what all of them begin and end with: of transformer.h.0.attn and transformer.h.1.attn, 0 and 1. */
export function shortenNames(names) {
  if (names.length < 2) return names;
  const paths = names.map((name) => name.split("."));
  const shortest = Math.min(...paths.map((path) => path.length));
  const same = (at) => paths.every((path) => path.at(at) === paths[0].at(at));
  let [first, last] = [0, 0];
  while (first < shortest - 1 && same(first)) first += 1;
  while (last < shortest - 1 - first && same(-1 - last)) last += 1;
  return paths.map((path) => path.slice(first, path.length - last).join("."));
}
