// A recording of the server as the drawings want it: sites whose weights are here, or come by tiles.

import { averageHeads, createLocalSource, SIZE } from "../source.js";
import { getBytes, getJson, getNumbers } from "./api.js";

export const MEAN = -1; // the head that is the mean of all

/** Sites of a recording: { name, heads, rows, columns, kind, whole, labels(), source(head) }, the last two promises. */
export function createSites({ recording, sites }) {
  const path = `recordings/${recording}`;
  const bundle = remember(() => loadBundle(path, sites));
  return sites.map((site, place) => createSite(path, site, place, bundle));
}

/** The same promise each time, unless it failed. */
function remember(make) {
  let made;
  return () => (made ??= make().catch((error) => { made = undefined; throw error; }));
}

function createSite(path, site, place, bundle) {
  const kind = site.kind === "difference" ? "difference" : "weights";
  const [table, labels] = [remember(() => loadTable(path, site, place, bundle)), remember(() => loadLabels(path, site, place, bundle))];
  const sources = new Map();
  return {
    ...site,
    kind,
    labels,
    source(head) {
      if (!sources.has(head)) sources.set(head, remember(() => (site.whole ? loadLocalSource(site, table(), head) : createTiledSource(path, site, place, head))));
      return sources.get(head)();
    },
  };
}

/** Labels and weights of all small sites in one answer: a list with undefined for those that are not in it. */
async function loadBundle(path, sites) {
  const content = await getBytes(`${path}/bundle`);
  const length = new DataView(content).getUint32(0, true);
  const { labels, sites: own } = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 4, length)));
  let start = 4 + length;
  return own.map((axes, place) => {
    if (!axes) return undefined;
    const { heads, rows, columns } = sites[place];
    const table = new Float32Array(content, start, heads * rows * columns);
    start += table.byteLength;
    return { table, labels: { rows: labels[axes[0]], columns: labels[axes[1]] } };
  });
}

async function loadTable(path, { whole }, place, bundle) {
  const found = whole && (await bundle())[place];
  return found ? found.table : getNumbers(`${path}/table?site=${place}`);
}

async function loadLabels(path, site, place, bundle) {
  if (!site.labelled) return { rows: site.rows, columns: site.columns };
  const found = site.whole && (await bundle())[place];
  return found ? found.labels : getJson(`${path}/labels?site=${place}`);
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
