// A recording of the server as the drawings want it: sites whose weights are here, or come by tiles.

import { averageHeads, createLocalSource, SIZE } from "../source.js";
import { getJson, getNumbers } from "./api.js";

export const MEAN = -1; // the head that is the mean of all

/** Sites of a recording: { name, heads, rows, columns, kind, whole, labels(), source(head) }, the last two promises. */
export function createSites({ recording, sites }) {
  return sites.map((site, place) => createSite(`recordings/${recording}`, site, place));
}

function createSite(path, site, place) {
  const once = new Map();
  const remember = (name, make) => {
    if (!once.has(name)) once.set(name, make().catch((error) => { once.delete(name); throw error; }));
    return once.get(name);
  };
  const kind = site.kind === "difference" ? "difference" : "weights";
  const table = () => remember("table", () => getNumbers(`${path}/table?site=${place}`));
  return {
    ...site,
    kind,
    labels: () => remember("labels", () => loadLabels(path, site, place)),
    source: (head) => remember(head, () => (site.whole ? loadLocalSource(site, table(), head) : createTiledSource(path, site, place, head))),
  };
}

async function loadLabels(path, site, place) {
  if (!site.labelled) return { rows: site.rows, columns: site.columns };
  return getJson(`${path}/labels?site=${place}`);
}

async function loadLocalSource({ heads, rows, columns }, table, head) {
  const cells = rows * columns;
  const weights = await table;
  const chosen = head === MEAN ? averageHeads(weights, heads, cells) : weights.subarray(head * cells, (head + 1) * cells);
  return createLocalSource(chosen, rows, columns);
}

async function createTiledSource(path, { rows, columns }, place, head) {
  const asked = `site=${place}&head=${head === MEAN ? "mean" : head}`;
  const largest = await getNumbers(`${path}/rows?${asked}`);
  return {
    rows,
    columns,
    tiled: true,
    largest: largest.reduce((most, one) => Math.max(most, one), 0),
    largestOfRow: (row) => largest[row],
    async weight(row, column) {
      const { weight } = await getJson(`${path}/weight?${asked}&row=${row}&column=${column}`);
      return weight ?? undefined;
    },
    async tile(up, across, row, column) {
      const values = await getNumbers(`${path}/tile?${asked}&up=${up}&across=${across}&row=${row}&column=${column}`);
      const size = (length, level, at) => Math.min(SIZE, Math.ceil(length / 2 ** level) - at * SIZE);
      return { values, rows: size(rows, up, row), columns: size(columns, across, column) };
    },
  };
}

/** One site made of weights that are here: what a search says while it goes on. */
export function createLocalSite(name, weights, rows, columns) {
  const source = createLocalSource(Float32Array.from(weights.flat()), rows.length, columns.length);
  return {
    name, heads: 1, rows: rows.length, columns: columns.length, kind: "weights", whole: true,
    labels: async () => ({ rows, columns }), source: async () => source,
  };
}

/** The site that says the most: the last that looks from one text at another. */
export function findFirstSite(sites) {
  const place = sites.findLastIndex(({ across }) => across);
  return place < 0 ? sites.length - 1 : place;
}
