// One token in every head: where each head looks from it, the strongest first.

import { createButton, make } from "./controls.js";
import { formatScore, labelAt, shorten } from "./labels.js";
import { readLine } from "./tables.js";

const MOST = 40; // heads that are listed

export function createEveryHead(panel) {
  const heading = make(panel.heading);
  const list = make("div", { className: "regard-chips", role: "group" });
  const element = make("div", { className: "part-every", hidden: true }, heading, list);

  function show(sites) {
    const { picked, say, labels, drawing, passing } = panel;
    element.hidden = !picked || drawing === "heads" || passing || sites.reduce((total, { count }) => total + count, 0) < 2;
    if (element.hidden) return;
    const { row, column } = picked;
    const tokens = { row: labelAt(labels.rows, row ?? 0), column: labelAt(labels.columns, column ?? 0) };
    const word = row !== undefined && column !== undefined ? "everyHeadPair" : row !== undefined ? "everyHeadRow" : "everyHeadColumn";
    heading.textContent = say(word, tokens);
    list.setAttribute("aria-label", heading.textContent);
    const entries = sites.flatMap((site, place) => (sharesAxes(place) ? listHeads(site, place) : []));
    entries.sort((one, other) => Math.abs(other.weight) - Math.abs(one.weight));
    list.replaceChildren(...entries.slice(0, MOST).map((entry) => createChip(entry, sites)));
    element.hidden = !entries.length;
  }

  /** Only heads between the same tokens are alike enough to be in one list. */
  function sharesAxes(place) {
    const [here, there] = [panel.axes[panel.place], panel.axes[place]];
    return String(here.rows) === String(there.rows) && String(here.columns) === String(there.columns);
  }

  function listHeads(site, place) {
    const { picked: { row, column } } = panel;
    return (site.heads ?? []).filter(({ tiled }) => !tiled).map((source, head) => {
      const words = panel.mergeWords(source);
      if (row !== undefined && column !== undefined) return { site: place, head, weight: words.weight(row, column) };
      const line = readLine(words, row === undefined ? "column" : "row", row ?? column);
      const best = line.reduce((most, one, at) => (Math.abs(one) > Math.abs(line[most]) ? at : most), 0);
      return { site: place, head, weight: line[best], at: best };
    });
  }

  function createChip({ site, head, weight, at }, sites) {
    const { labels, picked: { row }, say } = panel;
    const other = at === undefined ? "" : ` ${row === undefined ? "←" : "→"} ${shorten(labelAt(row === undefined ? labels.rows : labels.columns, at), 14)}`;
    const chip = createButton("", () => panel.change({ site, head }), { className: "regard-chip" });
    chip.append(make("b", { textContent: `${sites[site].short}·${head}` }), make("bdi", { textContent: other }), ` ${formatScore(weight)}`);
    chip.title = say("headOf", { site: sites[site].name, head: say("head", { head }) });
    chip.setAttribute("aria-pressed", String(site === panel.place && head === panel.head));
    chip.style.setProperty("--share", `${Math.round(100 * Math.min(1, Math.abs(weight)))}%`);
    return chip;
  }

  return { element, show };
}
