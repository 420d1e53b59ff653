// What a panel draws large: the map of one head, or lines of one or several.

import { createArcs } from "./arcs.js";
import { chooseHeadColors } from "./colors.js";
import { make } from "./controls.js";
import { createHeatMap } from "./heatmap.js";
import { MEAN } from "./sites.js";
import { createSwatches } from "./swatches.js";
import { readWeights } from "./tables.js";

export function createDrawings(panel) {
  return new Drawings(panel);
}

class Drawings {
  constructor(panel) {
    this.panel = panel;
    this.parts = Object.fromEntries(["map", "lines"].map((name) => [name, make("div", { className: `part-${name}` })]));
    this.note = make("p", { className: "note" });
    this.heading = make(panel.heading);
    this.swatches = createSwatches((heads) => panel.change({ heads }), (head) => this.lines?.isolateHead(head));
    this.parts.lines.append(this.swatches.element);
    this.element = make("div", { className: "part-drawings" }, make("div", { className: "regard-title" }, this.heading, panel.controls.zooming), this.parts.map, this.parts.lines, this.note);
  }

  show() {
    const { panel, parts } = this;
    const { drawing, source, site, say } = panel;
    this.element.hidden = drawing === "heads";
    this.heading.textContent = panel.name;
    parts.map.hidden = drawing !== "map";
    parts.lines.hidden = drawing !== "lines";
    this.note.textContent = source.tiled ? say("tiled", { rows: site.rows.toLocaleString(), columns: site.columns.toLocaleString() }) : "";
    if (drawing === "map") this.showMap();
    if (drawing === "lines") this.showLines();
  }

  get shared() {
    const { options, name, labels: { rows, columns } } = this.panel;
    return { ...options, name, rows, columns };
  }

  showMap() {
    const { panel, shared } = this;
    const { source, picked } = panel;
    const act = { onchoose: (cell) => panel.pick(cell), onview: (view) => this.rememberView(view) };
    this.map ??= createHeatMap(this.parts.map, { ...shared, source, ...act });
    this.map.chosen = picked;
    this.map.update({ ...shared, source });
    this.restoreView();
  }

  rememberView(view) {
    const { panel, map } = this;
    if (!map || this.restoring || panel.passing) return;
    clearTimeout(this.viewing);
    this.viewing = setTimeout(() => {
      const numbers = [view.row, view.column, view.width, view.height];
      panel.state.set({ look: map.whole ? "" : numbers.map((number) => Number(number.toPrecision(6))).join(",") });
    }, 250);
  }

  /** The part of the map that a link was made of; later, the map itself keeps its view while sizes are the same. */
  restoreView() {
    const { panel, map } = this;
    if (this.restored || panel.passing) return;
    this.restored = true;
    const [row, column, width, height] = panel.state.get("look").split(",").map(Number);
    if (!(width > 0 && height > 0)) return;
    this.restoring = true;
    map.view = { row, column, width, height };
    this.restoring = false;
  }

  /** The heads whose lines are drawn: those that are chosen; else the one that is shown, or all for their mean. */
  get lineHeads() {
    const { state, head, site } = this.panel;
    const asked = state.get("heads").split(",").filter((part) => /^\d+$/.test(part)).map(Number).filter((one) => one < site.heads);
    if (asked.length || state.get("heads") === "none") return asked;
    return head === MEAN && site.heads > 1 ? Array.from({ length: site.heads }, (_, place) => place) : [head];
  }

  async showLines() {
    const { panel } = this;
    const heads = this.lineHeads;
    const { turn, site } = panel;
    this.swatches.show({ count: site.heads, heads, say: panel.say, dark: panel.dark() });
    const sources = await Promise.all(heads.map((head) => panel.findSource(site, head)));
    if (turn !== panel.turn) return;
    const colors = chooseHeadColors(panel.dark());
    const tables = sources.map((source, place) => ({ head: heads[place], weights: readWeights(panel.mergeWords(source)), ...colors[Math.max(0, heads[place]) % colors.length] }));
    const lines = { ...this.shared, tables, picked: panel.picked };
    this.lines ??= createArcs(this.parts.lines, { ...lines, onpick: (cell) => panel.pick(cell) });
    this.lines.update(lines);
  }
}
