// One attention to look through: layer, head, colors; heat map or lines; all heads; tokens; saving.
//
//   const panel = createAttentionPanel(element, { state, language, report(error), mask: { places(), length(), toggle(place), clear() }, onshown(panel) });
//   panel.show(sites, { beside });   // of sources.js; the picture or sound that the keys are parts of
//   panel.update({ language }); // or nothing, when the theme has changed

import { createArcs } from "../arcs.js";
import { createMediaView } from "../media.js";
import { isDark } from "../colors.js";
import { createChoice, createSlider, createToggle, fillControls, make } from "../controls.js";
import { createHeadGrid } from "../grid.js";
import { createHeatMap } from "../heatmap.js";
import { countLabels, makeVisible } from "../labels.js";
import { readWeights } from "../tables.js";
import { createTokenPair, listTokens } from "../tokens.js";
import { createFormatter, formatHeadName, formatSiteName } from "../words.js";
import { countCells, FORMATS, MOST, saveFile } from "./export.js";
import { findFirstSite, MEAN } from "./sources.js";

const GRIDDED = 96; // heads that are shown side by side, at most
const LINED = 40_000; // weights that lines are drawn for, at most

export function createAttentionPanel(element, options) {
  return new AttentionPanel(element, options);
}

class AttentionPanel {
  constructor(element, { state, language, report, mask, onshown, names = ["target", "source"] }) {
    Object.assign(this, { state, language, report, mask, onshown, names });
    this.say = createFormatter(language);
    this.turn = 0;
    this.build(element);
  }

  build(element) {
    const set = (name) => (value) => this.change({ [name]: value });
    this.controls = {
      site: createChoice((value) => this.change({ site: Number(value), head: MEAN, pick: "", look: "" })),
      head: createChoice((value) => this.change({ head: Number(value) })),
      scale: createChoice(set("scale")),
      threshold: createSlider(set("threshold")),
      drawing: createToggle(set("drawing")),
    };
    const names = ["beside", "map", "lines", "grid", "said", "read", "saving", "zooming"];
    this.parts = Object.fromEntries(names.map((name) => [name, make("div", { className: `part-${name}` })]));
    this.headings = { heads: make("h3"), tokens: make("h3") };
    this.looked = make("p", { className: "looked" });
    this.note = make("p", { className: "note" });
    this.masks = make("p", { className: "masks" });
    const { said, read, beside } = this.parts;
    this.pair = createTokenPair({ said, read, looked: this.looked }, { onpick: (axis, place) => this.pick(axis, place) });
    this.pictured = createMediaView(beside, { onchoose: (row) => this.pick("row", row) });
    const controls = Object.values(this.controls).map((control) => control.element);
    this.element = make("div", { className: "attention", hidden: true }, beside,
      make("div", { className: "controls" }, ...controls, this.parts.zooming),
      make("div", { className: "panes" },
        make("div", { className: "pane" }, this.parts.map, this.parts.lines, this.note,
          make("div", { className: "strips" }, this.headings.tokens, this.parts.said, this.looked, this.parts.read, this.masks),
          this.parts.saving),
        make("div", { className: "pane side" }, this.headings.heads, this.parts.grid)));
    element.append(this.element);
    this.renderButtons();
  }

  /** Other attention: `passing` where more will follow soon, as while a search goes on. */
  async show(sites, { passing = false, beside } = {}) {
    this.sites = sites;
    this.beside = beside;
    this.passing = passing;
    this.gridSites = undefined;
    await this.refresh();
  }

  hide() {
    this.turn += 1;
    this.element.hidden = true;
  }

  change(changes) {
    this.state.set(changes);
    this.refresh();
  }

  update({ language } = {}) {
    if (language) {
      this.language = language;
      this.say = createFormatter(language);
      this.gridSites = undefined;
      this.renderButtons();
    }
    if (this.sites) this.refresh();
  }

  /** The place of the chosen site and head, held within what there is. */
  get chosen() {
    const asked = this.state.get("site");
    const site = asked >= 0 && asked < this.sites.length && !this.passing ? asked : findFirstSite(this.sites);
    const { heads } = this.sites[site];
    return { site, head: heads === 1 ? 0 : Math.min(this.state.get("head"), heads - 1) };
  }

  async refresh() {
    const turn = (this.turn += 1);
    const { site: place, head } = this.chosen;
    const site = this.sites[place];
    try {
      const [labels, source, grid] = await Promise.all([site.labels(), site.source(head), this.loadGrid()]);
      if (turn !== this.turn) return;
      Object.assign(this, { site, labels, source, place, head });
      this.element.hidden = false;
      this.render(grid);
    } catch (error) {
      if (turn === this.turn) this.report(error);
    }
  }

  /** Weights of a long attention are all small: until somebody chooses, they are colored by the largest. */
  get scale() {
    return this.state.get("scale") || (this.source.tiled ? "global" : "none");
  }

  get options() {
    const { scale } = this;
    return { scale, threshold: this.state.get("threshold"), language: this.language, dark: isDark(), kind: this.site.kind };
  }

  get name() {
    return formatHeadName(this.site, this.head, this.say);
  }

  /** What is picked: { axis: "row" or "column", place }. */
  get picked() {
    const found = /^([rc])(\d+)$/.exec(this.state.get("pick"));
    if (!found || this.passing) return undefined;
    const axis = found[1] === "r" ? "row" : "column";
    const place = Number(found[2]);
    return place < (axis === "row" ? this.site.rows : this.site.columns) ? { axis, place } : undefined;
  }

  pick(axis, place) {
    const pick = `${axis[0]}${place}`;
    this.change({ pick: this.state.get("pick") === pick ? "" : pick });
  }

  render(grid) {
    this.renderControls();
    this.renderDrawing();
    this.renderGrid(grid);
    this.renderTokens();
    const tiled = this.source.tiled && this.say("tiled", { rows: this.site.rows.toLocaleString(), columns: this.site.columns.toLocaleString() });
    this.note.textContent = tiled || "";
    this.onshown?.(this);
  }

  renderControls() {
    const { controls, say, state, sites, place: site, head, scale, drawing } = this;
    fillControls(controls, say, { sites, site, head, scale, drawing, threshold: state.get("threshold") });
    controls.drawing.element.hidden = this.source.tiled || countCells(this.source) > LINED;
  }

  get drawing() {
    const small = !this.source.tiled && countCells(this.source) <= LINED;
    return small ? this.state.get("drawing") : "map";
  }

  renderDrawing() {
    const { parts, source, labels: { rows, columns }, picked } = this;
    const shared = { ...this.options, name: this.name, rows, columns };
    parts.map.hidden = this.drawing !== "map";
    parts.lines.hidden = this.drawing !== "lines";
    this.map ??= createHeatMap(parts.map, { ...shared, source, onchoose: ({ row }) => this.pick("row", row), onview: (view) => this.rememberView(view) });
    this.map.chosen = picked?.axis === "row" ? { row: picked.place } : undefined;
    this.map.update({ ...shared, source });
    this.restoreView();
    if (this.drawing !== "lines") return;
    const lines = { ...shared, weights: readWeights(source), chosen: this.map.chosen?.row };
    this.lines ??= createArcs(parts.lines, { ...lines, onchoose: (row) => this.pick("row", row) });
    this.lines.update(lines);
  }

  rememberView(view) {
    if (!this.map || this.restoring || this.passing) return;
    clearTimeout(this.viewing);
    this.viewing = setTimeout(() => {
      const fitted = this.map.computeFit();
      const all = Math.abs(view.width - fitted.width) < 1e-6 && Math.abs(view.height - fitted.height) < 1e-6;
      const numbers = [view.row, view.column, view.width, view.height];
      this.state.set({ look: all ? "" : numbers.map((number) => Number(number.toPrecision(6))).join(",") });
    }, 250);
  }

  restoreView() {
    const [row, column, width, height] = this.state.get("look").split(",").map(Number);
    if (this.restored === this.site || this.passing) return;
    this.restored = this.site;
    if (!(width > 0 && height > 0)) return;
    this.restoring = true;
    this.map.view = { row, column, width, height };
    this.restoring = false;
  }

  /** The heads of all small sites, for the grid; undefined where there is nothing to choose from. */
  async loadGrid() {
    const small = this.sites.filter(({ whole, rows, columns }) => whole && rows * columns <= LINED);
    const heads = small.reduce((total, site) => total + site.heads, 0);
    if (small.length !== this.sites.length || heads < 2 || heads > GRIDDED) return undefined;
    this.gridSites ??= Promise.all(this.sites.map(async (site) => ({
      name: formatSiteName(site.name, this.say),
      heads: await Promise.all(Array.from({ length: site.heads }, (_, head) => site.source(head))),
      mean: await site.source(site.heads > 1 ? MEAN : 0),
    })));
    return this.gridSites;
  }

  renderGrid(sites) {
    this.headings.heads.textContent = sites ? this.say("allHeads") : "";
    this.parts.grid.parentElement.hidden = !sites;
    if (!sites) return;
    const chosen = { site: this.place, head: this.head };
    const options = { ...this.options, sites, mean: sites.map(({ mean }) => mean), chosen };
    this.grid ??= createHeadGrid(this.parts.grid, { ...options, onchoose: ({ site, head }) => this.change({ site, head, ...(site === this.place ? {} : { pick: "", look: "" }) }) });
    this.grid.update(options);
  }

  renderTokens() {
    const { say, source, picked, labels } = this;
    const strips = !source.tiled && countLabels(labels.rows) + countLabels(labels.columns) <= 2000;
    this.parts.said.parentElement.hidden = !strips;
    if (!strips) return void this.pictured.show(undefined, { source });
    const [rows, columns] = [listTokens(labels.rows), listTokens(labels.columns)];
    this.parts.read.hidden = Boolean(this.beside); // a picture or a sound says more than numbers of its parts
    this.headings.tokens.textContent = say("tokens");
    this.pair.show({ ...this.options, source, rows, columns, picked, names: this.names, say });
    this.pictured.show(this.beside, { ...this.options, name: this.name, source, rows, picked });
    this.renderMasks(columns);
  }

  // A word of the source that is picked can be masked; the last token is the end and cannot.
  renderMasks(columns) {
    if (!this.mask || this.passing) return this.masks.replaceChildren();
    const masked = this.mask.places();
    const crossed = this.site.columns === this.mask.length();
    [...this.pair.strips.read.element.children].forEach((token, place) => token.classList.toggle("masked", crossed && masked.includes(place)));
    const buttons = [];
    const { picked } = this;
    if (crossed && picked?.axis === "column" && picked.place < columns.length - 1) {
      const word = masked.includes(picked.place) ? "unmaskWord" : "maskWord";
      buttons.push(createButton(this.say(word, { token: makeVisible(columns[picked.place]) }), () => this.mask.toggle(picked.place)));
    }
    if (masked.length) buttons.push(createButton(this.say("unmaskAll"), () => this.mask.clear()));
    this.masks.replaceChildren(...buttons);
  }

  renderButtons() {
    const { say, parts } = this;
    const zooms = [["−", "zoomOut", () => this.map?.zoom(1 / 1.5)], ["+", "zoomIn", () => this.map?.zoom(1.5)]];
    const buttons = zooms.map(([sign, word, act]) => createButton(sign, act, { ariaLabel: say(word), title: say(word) }));
    parts.zooming.replaceChildren(...buttons, createButton(say("fit"), () => this.map?.fit()));
    const saves = Object.keys(FORMATS).map((format) =>
      createButton(format, () => this.saveAs(format), { ariaLabel: `${say("save")} ${format}` }));
    parts.saving.replaceChildren(make("span", { textContent: say("save") }), ...saves);
  }

  async saveAs(format) {
    const cells = countCells(this.source);
    if (format !== "PNG" && (this.source.tiled || cells > MOST)) {
      this.report(new Error(this.say("tooLarge", { cells: cells.toLocaleString(), most: MOST.toLocaleString() })));
      return;
    }
    const { map, source, labels: { rows, columns }, name } = this;
    await saveFile(format, { ...this.options, map, source, rows, columns, name });
  }
}

export function createButton(text, onclick, properties = {}) {
  const made = make("button", { type: "button", textContent: text, ...properties });
  made.addEventListener("click", onclick);
  return made;
}
