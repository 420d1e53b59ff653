// The attention panel: one attention to look through, in a report, in a notebook and on the page.
//
//   const panel = createAttentionPanel(element, {
//     state,                      // get(name), set({ … }): panelstate.js, or page/state.js, which lives in the address
//     language, dark(), names,    // names of the two axes
//     heading,                    // "h2" or "h3", whichever is below the heading around the panel
//     report(error), mask: { places(), length(), toggle(place), clear() }, onshown(panel),
//   });
//   panel.show(sites, { beside });   // sites.js; the picture or sound that the keys are parts of
//   panel.update({ language });      // or nothing, when the theme has changed

import { createCellView } from "./cellview.js";
import { isDark } from "./colors.js";
import { make, setBusy } from "./controls.js";
import { createDrawings } from "./drawings.js";
import { createHeadsView } from "./heads.js";
import { createPanelControls } from "./panelcontrols.js";
import { createTokenView } from "./tokenview.js";
import { createRollout, findStack } from "./rollout.js";
import { ALIGNMENT, findFirstSite, MEAN, ROLLOUT } from "./sites.js";
import { findWords, joinPieces, mergeSource, moveToPiece, moveToWord } from "./wordpieces.js";
import { createFormatter, formatHeadName } from "./words.js";

const LINED = 40_000; // weights that lines are drawn for, at most
const WEAK = 0.5; // a largest weight below this is drawn by itself, not from 0 to 1

export function createAttentionPanel(element, options) {
  return new AttentionPanel(element, options);
}

class AttentionPanel {
  constructor(element, { state, language, report, mask, onshown, names = ["output", "input"], dark = isDark, heading = "h3" }) {
    Object.assign(this, { state, language, report, mask, onshown, names, dark, heading });
    this.say = createFormatter(language);
    this.turn = 0;
    this.merged = new WeakMap(); // sources of pieces → of words
    this.rollouts = new WeakMap(); // sites → promises of sources
    this.controls = createPanelControls(this);
    this.drawings = createDrawings(this);
    this.cell = createCellView(this);
    this.tokens = createTokenView(this);
    this.heads = createHeadsView(this);
    this.controls.element.append(this.heads.order.element);
    this.element = make("div", { className: "attention", hidden: true }, this.tokens.media, this.controls.element,
      make("div", { className: "panes" },
        make("div", { className: "column" }, this.drawings.element,
          make("div", { className: "rest" }, this.tokens.element, this.heads.everyHead, this.controls.saving)),
        make("div", { className: "column" }, this.cell.element, this.heads.side)),
      this.heads.model);
    element.append(this.element);
  }

  /** Other attention: `passing` if more will follow soon, as while a search goes on. */
  async show(sites, { passing = false, beside } = {}) {
    this.keepPlace(sites);
    Object.assign(this, { sites, beside, passing });
    await this.refresh();
  }

  /** The same layer stays chosen if there is one of that name. */
  keepPlace(sites) {
    const { name } = this.site ?? {};
    if (name === undefined || this.passing || this.sites === sites) return;
    const place = sites.findIndex((site) => site.name === name);
    const known = this.state.get("site") >= 0;
    if (place < 0 && known && !sites.some((site) => this.sites.some((old) => old.name === site.name))) this.state.set({ site: -1, head: MEAN, heads: "" });
    else if (place >= 0 && known) this.state.set({ site: place });
  }

  hide() {
    this.turn += 1;
    setBusy(this.element, false);
    this.element.hidden = true;
  }

  change(changes) {
    if ("words" in changes) this.movePick(Boolean(changes.words));
    if ("site" in changes || "head" in changes) changes = { heads: "", ...changes };
    this.state.set(changes);
    this.refresh();
  }

  update({ language } = {}) {
    if (language) {
      this.language = language;
      this.say = createFormatter(language);
    }
    if (this.sites) this.refresh();
  }

  /** The place of the chosen site and head, held within what there is. */
  get chosen() {
    const asked = this.state.get("site");
    const site = asked >= 0 && asked < this.sites.length && !this.passing ? asked : findFirstSite(this.sites);
    const { heads, whole } = this.sites[site];
    const least = findStack(this.sites, site).length ? ROLLOUT : whole ? ALIGNMENT : MEAN;
    const head = Math.max(least, Math.min(this.state.get("head"), heads - 1));
    return { site, head: heads === 1 && head === MEAN ? 0 : head };
  }

  async refresh() {
    const turn = (this.turn += 1);
    const { site: place, head } = this.chosen;
    const site = this.sites[place];
    setBusy(this.element, true);
    try {
      const [labels, source, axes] = await Promise.all([site.labels(), this.findSource(site, head), Promise.all(this.sites.map((one) => one.labels()))]);
      if (turn !== this.turn) return;
      Object.assign(this, { site, place, head, axes, pieces: this.findPieces(labels, source) });
      this.labels = this.mergeLabels(labels);
      this.source = this.mergeWords(source);
      this.element.hidden = false;
      this.render();
    } catch (error) {
      if (turn === this.turn) this.report(error);
    } finally {
      if (turn === this.turn) setBusy(this.element, false);
    }
  }

  /** The weights of a head of a site, of their mean, of an alignment or of a rollout. */
  findSource(site, head) {
    if (head !== ROLLOUT) return site.source(head);
    if (!this.rollouts.has(site)) this.rollouts.set(site, createRollout(findStack(this.sites, this.sites.indexOf(site)).map((place) => this.sites[place])));
    return this.rollouts.get(site);
  }

  /** Where words begin, if the tokens of an axis are pieces of words. */
  findPieces({ rows, columns }, source) {
    if (source.tiled || this.passing) return {};
    return { rows: findWords(rows), columns: findWords(columns) };
  }

  get hasPieces() { return Boolean(this.pieces.rows || this.pieces.columns); }

  get asWords() { return this.hasPieces && this.state.get("words") === "yes"; }

  mergeLabels({ rows, columns }) {
    if (!this.asWords) return { rows, columns };
    return { rows: joinPieces(rows, this.pieces.rows), columns: joinPieces(columns, this.pieces.columns) };
  }

  /** A source as it is shown: of words, if they are asked for. */
  mergeWords(source) {
    if (!this.asWords || source.tiled) return source;
    if (!this.merged.has(source)) this.merged.set(source, mergeSource(source, this.pieces.rows, this.pieces.columns));
    return this.merged.get(source);
  }

  /** What is picked stays picked when pieces become words and words pieces. */
  movePick(words) {
    const { picked } = this;
    if (!picked) return;
    const move = words ? moveToWord : moveToPiece;
    const [row, column] = [move(this.pieces.rows, picked.row), move(this.pieces.columns, picked.column)];
    this.pickedOf = undefined;
    this.state.set({ pick: writePick(picked.row === undefined ? undefined : row, picked.column === undefined ? undefined : column) });
  }

  /** Small weights are colored by the largest of them, until somebody chooses. */
  get scale() {
    const asked = this.state.get("scale");
    return asked || (this.source.tiled || this.source.largest < WEAK || this.site.kind === "difference" ? "global" : "none");
  }

  get options() {
    const { scale } = this;
    return { scale, threshold: this.state.get("threshold"), language: this.language, dark: this.dark(), kind: this.site.kind };
  }

  get name() { return formatHeadName(this.site, this.head, this.say); }

  get small() { return !this.source.tiled && this.source.rows * this.source.columns <= LINED; }

  /** "map", "lines" or "heads": what is drawn large. */
  get drawing() {
    const asked = this.state.get("drawing");
    if (asked === "heads") return this.heads.several && !this.passing ? "heads" : "map";
    return asked === "lines" && this.small ? "lines" : "map";
  }

  /** What is picked: { row, column }, either of which may be undefined; it waits while the axes are others. */
  get picked() {
    const { row, column } = readPick(this.state.get("pick"));
    if ((row === undefined && column === undefined) || this.passing) return undefined;
    this.pickedOf ??= { rows: nameAxis(this.labels.rows), columns: nameAxis(this.labels.columns) };
    const here = (place, axis, length) => place === undefined || (place < length && this.pickedOf[axis] === nameAxis(this.labels[axis]));
    if (here(row, "rows", this.source.rows) && here(column, "columns", this.source.columns)) return { row, column };
    if (row !== undefined && here(row, "rows", this.source.rows)) return { row };
    if (column !== undefined && here(column, "columns", this.source.columns)) return { column };
    return undefined;
  }

  /** Picks a query, a key, or both; what is picked already is let go. */
  pick({ row, column }) {
    const pick = writePick(row, column);
    this.pickedOf = undefined;
    this.change({ pick: this.state.get("pick") === pick ? "" : pick });
  }

  render() {
    this.heads.prepare();
    const { drawing } = this;
    this.element.dataset.drawing = drawing;
    this.controls.show();
    this.drawings.show();
    this.cell.show();
    this.tokens.show();
    this.heads.show();
    this.onshown?.(this);
  }
}

function readPick(text) {
  const [, row, column] = /^(?:r(\d+))?(?:c(\d+))?$/.exec(text) ?? [];
  return { row: row && Number(row), column: column && Number(column) };
}

function writePick(row, column) {
  return `${row === undefined ? "" : `r${row}`}${column === undefined ? "" : `c${column}`}`;
}

function nameAxis(labels) {
  return typeof labels === "number" ? `#${labels}` : labels.join("\n");
}
