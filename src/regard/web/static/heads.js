// All heads of all layers: small beside the map, large as a view of the whole model, and as a row for one token.

import { createChoice, make, setBusy } from "./controls.js";
import { createEveryHead } from "./everyhead.js";
import { createHeadGrid } from "./grid.js";
import { shortenNames } from "./sites.js";
import { formatSiteName } from "./words.js";

const MOST = 2048; // heads that are shown side by side
const SIDE = { width: 400, least: 14, most: 52 }; // pixels of the small grid and of its pictures
const LARGE = { least: 22, most: 150 };
const MEASURES = ["diagonal", "previous", "next", "first", "uniform", "entropy", "agreement"];

export function createHeadsView(panel) {
  return new HeadsView(panel);
}

class HeadsView {
  constructor(panel) {
    this.panel = panel;
    this.heading = make(panel.heading);
    this.parts = { grid: make("div", { className: "part-grid" }), model: make("div", { className: "part-large" }) };
    this.side = make("div", { className: "pane side" }, this.heading, this.parts.grid);
    this.order = createChoice((value) => panel.change({ order: value }));
    this.legend = make("p", { className: "note" });
    this.model = make("div", { className: "part-model", hidden: true }, this.parts.model, this.legend);
    this.row = createEveryHead(panel);
    this.everyHead = this.row.element;
    this.grids = {};
    new ResizeObserver(() => this.resize()).observe(this.model);
  }

  get count() { return this.panel.sites.reduce((total, { heads }) => total + heads, 0); }

  get several() { return this.count > 1 && this.count <= MOST; }

  /** The sites as the grids want them, made anew when there are others. */
  prepare() {
    const { panel } = this;
    if (this.of === panel.sites && this.language === panel.language) return;
    Object.assign(this, { of: panel.sites, language: panel.language });
    const names = panel.sites.map(({ name }) => formatSiteName(name, panel.say));
    const short = shortenNames(names);
    this.sites = panel.sites.map((site, place) => ({
      name: names[place], short: short[place], count: site.heads, kind: site.kind, measures: site.measures, heads: undefined, load: () => this.load(place),
    }));
    panel.sites.forEach(({ whole }, place) => whole && this.several && this.load(place));
  }

  /** The heads of a site and their mean, when its row comes into sight. */
  async load(place) {
    const [site, row] = [this.panel.sites[place], this.sites[place]];
    row.asked ??= site.thumbnails().then((found) => Object.assign(row, found), (error) => { row.asked = undefined; this.panel.report(error); })
      .then(() => this.loaded());
    setBusy(this.everyHead, this.isLoading);
    return row.asked;
  }

  get isLoading() { return this.sites.some(({ asked, heads }) => asked && !heads); }

  loaded() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      if (this.of === this.panel.sites) this.show();
      setBusy(this.everyHead, this.isLoading);
    });
  }

  show() {
    const { panel, several } = this;
    const large = panel.drawing === "heads";
    this.side.hidden = !several || large;
    this.model.hidden = !large;
    this.order.element.hidden = true;
    this.heading.textContent = panel.say("allHeads");
    if (large) this.showModel();
    else if (several) this.showGrid("grid", { pixels: this.fitSide() });
    this.row.show(this.sites);
  }

  showModel() {
    const { panel, order } = this;
    const known = MEASURES.filter((name) => panel.sites.every(({ measures }) => measures?.[name]));
    this.legend.textContent = panel.say("fromZero");
    order.label(panel.say("order"));
    order.set([["", panel.say("byLayer")], ...known.map((name) => [name, panel.say(name)])], panel.state.get("order"));
    order.element.hidden = !known.length;
    const by = known.includes(panel.state.get("order")) ? panel.state.get("order") : "";
    this.showGrid("model", { pixels: this.fitModel(by), order: by, badges: true });
  }

  showGrid(name, options) {
    const { panel } = this;
    const { place: site, head } = panel;
    const all = { ...panel.options, ...options, sites: this.sites, chosen: { site, head } };
    const onchoose = (chosen, entered) => panel.change({ ...chosen, ...(name === "model" && entered ? { drawing: "map" } : {}) });
    this.grids[name] ??= createHeadGrid(this.parts[name], { ...all, onchoose });
    this.grids[name].update(all);
  }

  get columns() { return Math.max(...this.sites.map(({ count }) => count)) + 1; }

  fitSide() {
    const room = (SIDE.width - 90) / this.columns - 5;
    return Math.floor(Math.min(SIDE.most, Math.max(SIDE.least, room)));
  }

  /** As large as all layers fit on the screen, and all heads across it in any case. */
  fitModel(order) {
    const width = (this.panel.element.clientWidth || 900) - 90;
    if (order) return 64;
    const across = width / this.columns - 6;
    const down = (window.innerHeight * 0.74) / this.sites.length - 7;
    return Math.floor(Math.min(LARGE.most, across, Math.max(LARGE.least, down)));
  }

  resize() {
    if (this.of && this.of === this.panel.sites && this.panel.drawing === "heads") this.showModel();
  }
}
