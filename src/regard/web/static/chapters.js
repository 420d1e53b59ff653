// A recording to look through: its chapters (hypotheses, for instance), one of them in the attention panel.
//
//   createChapterView(element, recording, { language, theme(), dark(), onlanguage, ontheme });
//
// `recording` is what regard.inspect.draw.report writes:
//   { title, exact, notes: [], labels: [[token, …]], tables: [packed],
//     chapters: [{ name, score, beside, sites: [{ name, kind, rows, columns, heads, height, width, step, measures, table }] }] }
// where rows and columns are places in `labels`, or null for numbers, and `table` is a place in `tables`.

import { createToggle, make } from "./controls.js";
import { formatScore } from "./labels.js";
import { createAttentionPanel } from "./panel.js";
import { createPanelState } from "./panelstate.js";
import { createPackedSites } from "./sites.js";
import { addWords, chooseLanguage, createFormatter } from "./words.js";

addWords({
  exactAll: ["Weights are exact: every digit of float32.", "权重精确：保留 float32 的每一位。"],
  exactKernel: ["Weights come from the kernel: every digit of float32.", "权重来自内核：保留 float32 的每一位。"],
  exactBits: ["Weights are rounded to {digits} significant digits to keep this file small.", "为了缩小文件，权重保留 {digits} 位有效数字。"],
});

export async function createChapterView(element, recording, options) {
  const view = new ChapterView(element, recording, options);
  await view.choose({});
  return view;
}

class ChapterView {
  constructor(element, recording, { language, dark, tools = [], onlanguage }) {
    Object.assign(this, { recording, onlanguage, language: chooseLanguage(language), place: 0 });
    this.sites = new Map(); // chapter → its sites
    this.build(element, dark, tools);
  }

  build(element, dark, tools) {
    const { title } = this.recording;
    this.chapter = createToggle((value) => this.choose({ place: Number(value) }));
    this.chapter.element.classList.add("regard-chapters");
    this.languages = createToggle((value) => this.choose({ language: value }));
    const heading = make("h1", { textContent: title, hidden: !title });
    this.trouble = make("p", { className: "regard-trouble", role: "alert", hidden: true });
    this.foot = make("footer", { className: "regard-foot" });
    this.head = make("header", { className: "regard-head" }, heading, make("div", { className: "regard-tools" }, this.languages.element, ...tools));
    element.append(this.head, this.chapter.element, this.trouble);
    this.panel = createAttentionPanel(element, { state: createPanelState(), heading: "h2", language: this.language, dark, report: (error) => this.report(error), onshown: () => this.render() });
    element.append(this.foot);
  }

  report(error) {
    this.trouble.textContent = error.message;
    this.trouble.hidden = false;
  }

  /** Changes the chapter or the language. */
  async choose({ place = this.place, language = this.language }) {
    Object.assign(this, { place, language });
    this.onlanguage?.(language);
    const { chapters } = this.recording;
    if (!this.sites.has(place)) {
      this.recording.known ??= new Map();
      this.sites.set(place, createPackedSites(this.recording, chapters[place]));
    }
    Object.assign(this.panel, { language, say: createFormatter(language) });
    await this.panel.show(this.sites.get(place), { beside: chapters[place].beside });
  }

  /** Shows sites of elsewhere in place of the first chapter's, { sites, notes }; undefined: its own again. */
  async replaceSites(others) {
    this.others = others;
    if (others) this.sites.set(0, others.sites);
    else this.sites.delete(0);
    await this.choose({ place: 0 });
  }

  render() {
    const say = createFormatter(this.language);
    const { chapters } = this.recording;
    this.trouble.hidden = true;
    this.chapter.label(say("hypotheses"));
    this.chapter.set(chapters.map(({ name, score }, place) => [place, formatChapterName(name, score, say)]), this.place);
    this.chapter.element.hidden = chapters.length < 2 && chapters[this.place].score === null;
    this.languages.label(say("language"));
    this.languages.set([["en", "English"], ["zh", "中文"]], this.language);
    this.renderFoot(say);
  }

  renderFoot(say) {
    const { exact, made } = this.recording;
    const { notes } = this.others ?? this.recording;
    const digits = Math.floor((exact + 1) * Math.log10(2));
    const said = this.others ? say("exactKernel") : exact >= 23 ? say("exactAll") : say("exactBits", { digits });
    const [rows, columns] = this.panel.site.step ?? [1, 1];
    const step = rows > 1 || columns > 1 ? [say("pooled", { rows, columns })] : [];
    this.foot.replaceChildren(...[said, ...step, ...notes, made].map((text) => make("p", { textContent: text })));
  }
}

function formatChapterName(name, score, say) {
  return score === null ? name : `${name}  (${say("score", { score: formatScore(score) })})`;
}
