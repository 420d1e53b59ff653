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
  kernelAbsent: ["Run this cell to look at every weight: they come from the kernel.", "运行此单元格即可查看每个权重：权重来自内核。"],
  kernelSilent: ["The kernel does not answer: it is busy, was restarted, or is gone. Shown is what stands in this cell; the rest comes when the kernel answers. After a restart, run the cell again.", "内核没有回应：它正忙、已重启或已不在。此处显示的是单元格中保存的内容；内核回应后会补全其余部分。重启之后，请重新运行此单元格。"],
  kernelGone: ["The kernel no longer keeps this recording. Shown is what stands in this cell; to see the rest, run it again.", "内核已不再保留这份记录。此处显示的是单元格中保存的内容；要查看其余部分，请重新运行此单元格。"],
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

  /**
   * What there is of the notebook's kernel: "absent" (none yet), "yes" with its sites, { sites, notes }, which are shown in
   * place of the first chapter's, "silent" or "gone", when the cell's own are shown again.
   */
  async setKernel(state, others) {
    Object.assign(this, { kernel: state, others });
    if (others) this.sites.set(0, others.sites);
    else this.sites.delete(0);
    await this.choose({ place: 0 });
  }

  render() {
    const say = createFormatter(this.language);
    const { chapters } = this.recording;
    const lost = { silent: "kernelSilent", gone: "kernelGone" }[this.kernel];
    Object.assign(this.trouble, { textContent: lost ? say(lost) : "", hidden: !lost });
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
    const precision = this.others ? say("exactKernel") : exact >= 23 ? say("exactAll") : say("exactBits", { digits });
    const [rows, columns] = this.panel.site.step ?? [1, 1];
    const step = rows > 1 || columns > 1 ? [say("pooled", { rows, columns })] : [];
    const absent = this.kernel === "absent" ? [say("kernelAbsent")] : [];
    this.foot.replaceChildren(...[precision, ...step, ...absent, ...notes, made].map((text) => make("p", { textContent: text })));
  }
}

function formatChapterName(name, score, say) {
  return score === null ? name : `${name}  (${say("score", { score: formatScore(score) })})`;
}
