// Sites, as in sites.js, of a recording that stays where it is, at a server or in the kernel of a notebook: its weights
// come all at once if they are few, else by tiles.

import { createSite, MEAN } from "./sites.js";
import { createLocalSource, SIZE } from "./source.js";

const SMALL = 128; // cells of a small picture, along an axis

/** `ask(part, { name: value })` promises an ArrayBuffer, as regard.inspect.display.parts has it. */
export function createServedSites(sites, ask) {
  const bundle = remember(() => loadBundle(ask, sites));
  return sites.map((site, place) => createServedSite(ask, site, place, bundle));
}

/** All sites of a recording that a kernel has: { sites, notes }. */
export async function loadServedSites(ask) {
  const { sites, notes } = await askJson(ask, "summary", {});
  return { sites: createServedSites(sites, ask), notes };
}

async function askNumbers(ask, part, values) {
  return new Float32Array(await ask(part, values));
}

async function askJson(ask, part, values) {
  return JSON.parse(new TextDecoder().decode(await ask(part, values)));
}

/** The same promise each time, unless it failed. */
function remember(make) {
  let made;
  return () => (made ??= make().catch((error) => { made = undefined; throw error; }));
}

function createServedSite(ask, site, place, bundle) {
  const kind = site.kind === "difference" ? "difference" : "weights";
  const labels = remember(() => loadLabels(ask, site, place, bundle));
  const explain = (head, row, column) => askJson(ask, "explanation", { site: place, head: head === MEAN ? "mean" : head, row, column });
  if (site.whole) return createSite({ ...site, kind, labels, explain }, remember(() => loadTable(ask, site, place, bundle)));
  const sources = new Map();
  const source = (head) => {
    if (!sources.has(head)) sources.set(head, remember(() => createTiledSource(ask, site, place, head)));
    return sources.get(head)();
  };
  return { ...site, kind, labels, explain, source, thumbnails: () => loadThumbnails(ask, site, place) };
}

/** Labels and weights of all small sites in one answer: a list with undefined for those that are not in it. */
async function loadBundle(ask, sites) {
  const content = await ask("bundle", {});
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

async function loadTable(ask, { whole }, place, bundle) {
  const found = whole && (await bundle())[place];
  return found ? found.table : askNumbers(ask, "table", { site: place });
}

async function loadLabels(ask, site, place, bundle) {
  if (!site.labelled) return { rows: site.rows, columns: site.columns };
  const found = site.whole && (await bundle())[place];
  return found ? found.labels : askJson(ask, "labels", { site: place });
}

// One coarse tile for each head, one after the other: the map that somebody looks at comes first.
async function loadThumbnails(ask, site, place) {
  const load = async (head) => {
    const level = (cells) => Math.max(0, Math.ceil(Math.log2(cells / SMALL)));
    const [up, across] = [level(site.rows), level(site.columns)];
    const values = await askNumbers(ask, "tile", { site: place, head: head === MEAN ? "mean" : head, up, across, row: 0, column: 0 });
    return { ...createLocalSource(values, Math.ceil(site.rows / 2 ** up), Math.ceil(site.columns / 2 ** across)), tiled: true };
  };
  const heads = [];
  for (let head = 0; head < site.heads; head += 1) heads.push(await load(head));
  return { heads, mean: site.heads > 1 ? await load(MEAN) : undefined };
}

async function createTiledSource(ask, { rows, columns }, place, head) {
  const asked = { site: place, head: head === MEAN ? "mean" : head };
  const largest = await askNumbers(ask, "rows", asked);
  return {
    rows,
    columns,
    tiled: true,
    largest: largest.reduce((most, one) => Math.max(most, one), 0),
    largestOfRow: (row) => largest[row],
    async weight(row, column) {
      const { weight } = await askJson(ask, "weight", { ...asked, row, column });
      return weight ?? undefined;
    },
    async tile(up, across, row, column) {
      const values = await askNumbers(ask, "tile", { ...asked, up, across, row, column });
      const size = (length, level, at) => Math.min(SIZE, Math.ceil(length / 2 ** level) - at * SIZE);
      return { values, rows: size(rows, up, row), columns: size(columns, across, column) };
    },
  };
}
