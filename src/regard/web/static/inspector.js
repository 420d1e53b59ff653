// A recording to look through: hypotheses, layers, heads; heat map or lines; tokens; picture or sound beside it.
//
//   createInspector(element, recording, { language, theme });
//
// `recording` is what regard.inspect.draw.report writes:
//   { title, exact, notes: [], labels: [[token, …]], tables: [packed],
//     chapters: [{ name, score, beside, sites: [{ name, kind, rows, columns, heads, height, width, step, table }] }] }
// where rows and columns are places in `labels`, or null for numbers, and `table` is a place in `tables`.

import { createArcs } from "./arcs.js";
import { createMediaView } from "./media.js";
import { isDark } from "./colors.js";
import { createChoice, createLegend, createSlider, createToggle, fillControls, make } from "./controls.js";
import { createHeadGrid } from "./grid.js";
import { createHeatMap } from "./heatmap.js";
import { formatExactly } from "./labels.js";
import { loadSiteSources, readWeights } from "./tables.js";
import { createPaint } from "./tiles.js";
import { createTokenPair, listTokens } from "./tokens.js";
import { addWords, chooseLanguage, createFormatter, formatHeadName, formatSiteName } from "./words.js";

addWords({
  en: {
    exactAll: "Weights are exact: every digit of float32.",
    exactBits: "Weights are rounded to {digits} significant digits to keep this file small.",
    rowLargest: "row’s largest",
    whole: "All queries together: weight received on average",
  },
  zh: {
    exactAll: "权重精确：保留 float32 的每一位。",
    exactBits: "为了缩小文件，权重保留 {digits} 位有效数字。",
    rowLargest: "该行最大值",
    whole: "所有查询的平均权重",
  },
});

export async function createInspector(element, recording, { language, theme } = {}) {
  const page = new Inspector(element, recording, { language: chooseLanguage(language), theme });
  await page.choose({ chapter: 0, site: page.findFirstSite(0), head: -1 });
  return page;
}

class Inspector {
  constructor(element, recording, { language, theme }) {
    this.recording = recording;
    this.state = { language, theme, scale: undefined, threshold: 0, drawing: "map", picked: undefined };
    this.known = new Map(); // table → its sources
    this.build(element);
  }

  /** The last layer that looks from one text at another, where there is one: an alignment says the most. */
  findFirstSite(chapter) {
    const { sites } = this.recording.chapters[chapter];
    const across = sites.map((site) => site.rows !== site.columns || site.height !== site.width);
    return Math.max(0, across.lastIndexOf(true));
  }

  build(element) {
    const change = (name) => (value) => this.choose({ [name]: value });
    this.controls = {
      chapter: createToggle((value) => this.choose({ chapter: Number(value), picked: undefined })),
      site: createChoice((value) => this.choose({ site: Number(value), head: -1, picked: undefined })),
      head: createChoice((value) => this.choose({ head: Number(value) })),
      scale: createChoice(change("scale")),
      threshold: createSlider(change("threshold")),
      drawing: createToggle(change("drawing")),
      language: createToggle(change("language")),
      theme: createToggle(change("theme")),
    };
    const { chapter, site, head, scale, threshold, drawing, language, theme } = this.controls;
    this.parts = Object.fromEntries(["map", "lines", "grid", "said", "read", "beside"].map((name) => [name, make("div")]));
    this.headings = Object.fromEntries(["heads", "tokens"].map((name) => [name, make("h2")]));
    this.legend = createLegend();
    this.looked = make("p", { className: "regard-looked" });
    this.foot = make("footer", { className: "regard-foot" });
    this.fitButton = make("button", { type: "button", className: "regard-fit" });
    this.fitButton.addEventListener("click", () => this.map?.fit());
    chapter.element.classList.add("regard-chapters");
    const { said, read } = this.parts;
    this.pair = createTokenPair({ said, read, looked: this.looked }, { onpick: (axis, place) => this.pick(axis, place) });
    this.beside = createMediaView(this.parts.beside, { onchoose: (row) => this.pick("row", row) });
    const tokens = make("section", { className: "regard-tokens" }, this.headings.tokens, said, this.looked, read);
    element.append(
      make("header", { className: "regard-head" }, make("h1", { textContent: this.recording.title }),
        make("div", { className: "regard-tools" }, language.element, theme.element)),
      chapter.element,
      make("div", { className: "regard-controls" },
        ...[site, head, scale, this.legend, threshold, drawing].map((control) => control.element), this.fitButton),
      make("div", { className: "regard-panes" },
        make("section", { className: "regard-main" }, this.parts.map, this.parts.lines, tokens),
        make("section", { className: "regard-side" }, this.headings.heads, this.parts.grid, this.parts.beside)),
      this.foot,
    );
  }

  get chapter() { return this.recording.chapters[this.state.chapter]; }

  get site() { return this.chapter.sites[this.state.site]; }

  /** Weights of a long attention are all small: until somebody chooses, they are colored by the largest. */
  get scale() { return this.state.scale ?? (this.site.step.some((cells) => cells > 1) ? "global" : "none"); }

  get options() {
    const { scale, state: { threshold, language } } = this;
    return { scale, threshold, language, dark: isDark(), kind: this.site.kind };
  }

  getLabels(axis) {
    const place = this.site[axis];
    return place === null ? this.site[axis === "rows" ? "height" : "width"] : this.recording.labels[place];
  }

  loadSources(site) {
    const name = [site.table, site.heads].join();
    if (!this.known.has(name)) {
      this.known.set(name, loadSiteSources({ ...site, table: this.recording.tables[site.table] }));
    }
    return this.known.get(name);
  }

  /** Changes what is shown: chapter, site, head (−1 is the mean), scale, threshold, drawing, language, theme. */
  async choose(changes) {
    Object.assign(this.state, changes);
    this.state.site = Math.min(this.state.site, this.chapter.sites.length - 1);
    if (this.site.heads === 1) this.state.head = 0;
    else this.state.head = Math.min(this.state.head, this.site.heads - 1);
    if (this.state.theme) document.documentElement.dataset.theme = this.state.theme;
    document.documentElement.lang = this.state.language;
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const all = await Promise.all(this.chapter.sites.map((site) => this.loadSources(site)));
    if (turn === this.turn) this.render(all);
  }

  render(all) {
    this.say = createFormatter(this.state.language);
    const { heads, mean } = all[this.state.site];
    this.source = this.state.head < 0 ? mean : heads[this.state.head];
    this.name = formatHeadName(this.site, this.state.head, this.say);
    this.renderControls();
    this.renderDrawing();
    this.renderGrid(all);
    this.renderTokens();
    this.renderFoot();
  }

  renderControls() {
    const { state, say, controls, chapter } = this;
    for (const [name, word] of [["chapter", "hypotheses"], ["language", "language"], ["theme", "theme"]]) controls[name].label(say(word));
    const chapters = this.recording.chapters.map(({ name, score }, place) => [place, this.formatChapterName(name, score)]);
    controls.chapter.set(chapters, state.chapter);
    controls.chapter.element.hidden = chapters.length < 2 && chapter.score === null;
    fillControls(controls, say, { ...state, sites: chapter.sites, scale: this.scale });
    controls.language.set([["en", "English"], ["zh", "中文"]], state.language);
    controls.theme.set([["light", "☀"], ["dark", "☾"]], isDark() ? "dark" : "light");
    this.fitButton.textContent = say("fit");
    const most = { none: "1", row: say("rowLargest"), global: formatExactly(this.source.largest) }[this.scale];
    this.legend.set(createPaint(this.options), this.site.kind === "difference" ? `−${most}` : "0", most);
  }

  formatChapterName(name, score) {
    return score === null ? name : `${name}  (${this.say("score", { score: score.toFixed(2).replace("-", "−") })})`;
  }

  renderDrawing() {
    const { state, parts, source } = this;
    const shared = { ...this.options, name: this.name, rows: this.getLabels("rows"), columns: this.getLabels("columns") };
    parts.map.hidden = state.drawing !== "map";
    parts.lines.hidden = state.drawing !== "lines";
    this.map ??= createHeatMap(parts.map, { ...shared, source, onchoose: ({ row }) => this.pick("row", row) });
    this.map.update({ ...shared, source });
    this.map.chosen = state.picked?.axis === "row" ? { row: state.picked.place } : undefined;
    if (state.drawing !== "lines") return;
    const lines = { ...shared, weights: readWeights(source), chosen: this.map.chosen?.row };
    this.lines ??= createArcs(parts.lines, { ...lines, onchoose: (row) => this.pick("row", row) });
    this.lines.update(lines);
  }

  renderGrid(all) {
    const several = all.length > 1 || all[0].heads.length > 1;
    this.headings.heads.textContent = several ? this.say("allHeads") : "";
    this.parts.grid.hidden = !several;
    if (!several) return;
    const { site, head, chapter } = this.state;
    const shown = [chapter, this.state.language].join();
    if (this.gridShown !== shown) {
      this.gridSites = this.chapter.sites.map(({ name }, place) => ({ name: formatSiteName(name, this.say), heads: all[place].heads }));
      this.gridShown = shown;
    }
    const options = { ...this.options, sites: this.gridSites, mean: all.map(({ mean }) => mean), chosen: { site, head } };
    this.grid ??= createHeadGrid(this.parts.grid, { ...options, onchoose: (chosen) => this.choose({ picked: undefined, ...chosen }) });
    this.grid.update(options);
  }

  pick(axis, place) {
    const { picked } = this.state;
    const same = picked?.axis === axis && picked.place === place;
    this.choose({ picked: same ? undefined : { axis, place } });
  }

  renderTokens() {
    const { state: { picked }, say, source } = this;
    const [rows, columns] = [listTokens(this.getLabels("rows")), listTokens(this.getLabels("columns"))];
    this.headings.tokens.textContent = say("tokens");
    this.pair.show({ ...this.options, source, rows, columns, picked, names: ["said", "read"], say });
    this.beside.show(this.chapter.beside, { ...this.options, name: this.name, source, rows, picked });
  }

  renderFoot() {
    const { exact, notes, made } = this.recording;
    const digits = Math.floor((exact + 1) * Math.log10(2));
    const said = exact >= 23 ? this.say("exactAll") : this.say("exactBits", { digits });
    const [rows, columns] = this.site.step;
    const step = rows > 1 || columns > 1 ? [this.say("pooled", { rows, columns })] : [];
    this.foot.replaceChildren(...[said, ...step, ...notes, made].map((text) => make("p", { textContent: text })));
  }
}
