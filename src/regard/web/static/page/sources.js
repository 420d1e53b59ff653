// A recording of the server as a panel wants it: sites whose weights are here, or come by tiles.

import { createSite, MEAN } from "../sites.js";
import { SIZE } from "../source.js";
import { getBytes, getJson, getNumbers } from "./api.js";

/** Sites of a recording, as in ../sites.js. */
export function createSites({ recording, sites }) {
  const path = `recordings/${recording}`;
  const bundle = remember(() => loadBundle(path, sites));
  return sites.map((site, place) => createServedSite(path, site, place, bundle));
}

/** The same promise each time, unless it failed. */
function remember(make) {
  let made;
  return () => (made ??= make().catch((error) => { made = undefined; throw error; }));
}

function createServedSite(path, site, place, bundle) {
  const kind = site.kind === "difference" ? "difference" : "weights";
  const labels = remember(() => loadLabels(path, site, place, bundle));
  if (site.whole) return createSite({ ...site, kind, labels }, remember(() => loadTable(path, site, place, bundle)));
  const sources = new Map();
  const source = (head) => {
    if (!sources.has(head)) sources.set(head, remember(() => createTiledSource(path, site, place, head)));
    return sources.get(head)();
  };
  return { ...site, kind, labels, source, thumbnails: async () => [] };
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
