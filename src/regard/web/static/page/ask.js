// Ask a run about an image, a sound, a passage or a line of text, and see where it looked for each word.

import { createButton, createChoice, make, setBusy } from "../controls.js";
import { createAttentionPanel } from "../panel.js";
import { createFormatter } from "../words.js";
import { postFile } from "./api.js";
import { createFactsView, createPassageView } from "./evidence.js";
import { createFileChooser, findSizeError } from "./files.js";
import { localizeRows, readAnswer } from "./predictions.js";
import { createSites } from "./sources.js";

const ACCEPTED = { image: "image/*", sound: "audio/*,.wav,.flac,.ogg,.mp3" };
const NAMES = { image: ["output", "regions"], sound: ["output", "stretches"], passage: ["passage", "question"], text: ["output", "input"] };
const WRITTEN = { passage: "passage", text: "asked" }; // the box that holds what is sent

/** The runs that can be asked, and those that can only be looked at from a terminal, of all that are served. */
export function findAskable({ runs }) {
  return runs.filter(({ task, ready }) => task && task !== "translation" && ready);
}

export function createAskView(element, context) {
  return new AskView(element, context);
}

class AskView {
  constructor(element, { state, language, server, report, session }) {
    Object.assign(this, { state, language, server, report, session, say: createFormatter(language) });
    this.run = this.runs.find(({ name }) => name === state.get("run")) ?? this.runs[0];
    this.build(element);
    this.start();
  }

  get runs() {
    return findAskable(this.server);
  }

  build(element) {
    const { say, state, language, report, run } = this;
    this.answer = make("div", { className: "answer", ariaLive: "polite" });
    this.result = make("section", { className: "card", hidden: true }, make("h2", { textContent: say("answer") }), this.answer);
    this.nothing = make("p", { className: "note", hidden: true, textContent: say("nothingLooked") });
    this.seen = make("section", { className: "card", hidden: true }, make("h2", { textContent: say("attention") }), this.nothing);
    this.passage = createPassageView(language);
    this.facts = createFactsView(language);
    this.result.append(this.passage.element, this.facts.element);
    if (run) element.append(this.buildForm());
    element.append(this.result, this.seen);
    this.panel = createAttentionPanel(this.seen, { state, language, report, names: NAMES[run?.takes] });
  }

  buildForm() {
    const { say, state, run } = this;
    this.form = make("form", { className: "card ask drop" }, make("div", { className: "controls" }, this.buildRunChoice()));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    if (!run.takes) {
      this.form.append(make("p", { className: "note" }, `${say("lookElsewhere")} `, make("code", { textContent: `regard show ${run.name}` })));
      return this.form;
    }
    if (WRITTEN[run.takes]) this.form.append(this.buildTextArea(WRITTEN[run.takes], this.server.limits.passage, run.takes === "passage" ? 5 : 2));
    else {
      const name = say(run.takes === "image" ? "chooseImage" : "chooseSound");
      this.chooser = createFileChooser(this.form, { name, hint: say("dropHere"), accept: ACCEPTED[run.takes], onfile: (file) => this.takeFile(file) });
      this.form.append(this.chooser.element);
    }
    if (run.questioned) this.form.append(this.buildTextArea("question", this.server.limits.characters, 1));
    const buttons = [];
    if (run.questioned || run.takes === "text") buttons.push(make("button", { type: "submit", className: "primary", textContent: say("ask") }));
    if (run.example) buttons.push(createButton(say("example"), () => this.askAnew({ example: true })));
    if (buttons.length) this.form.append(make("p", { className: "controls" }, ...buttons));
    this.form.append(make("p", { className: "note", textContent: say(run.takes === "text" ? `help-${run.task}` : `${run.takes}Help`) }));
    return this.form;
  }

  buildRunChoice() {
    const list = createChoice((name) => {
      this.state.go({ run: name, asked: "", example: "", site: -1, head: -1, pick: "", look: "" });
      this.session.redraw(); // another kind of run has another form
    });
    list.label(this.say("run"));
    list.set(this.runs.map(({ name, task }) => [name, `${name} · ${task}`]), this.run.name);
    return list.element;
  }

  buildTextArea(name, most, rows) {
    const text = make("textarea", { rows, value: this.state.get(name), placeholder: this.say(`${name}Hint`), dir: "auto", ariaLabel: this.say(name), name });
    const note = make("p", { className: "note changed", role: "status" });
    text.addEventListener("input", () => {
      const given = text.value.length;
      if (given > most) text.value = text.value.slice(0, most);
      note.textContent = given > most ? this.say("cutText", { given: given.toLocaleString(), most: most.toLocaleString() }) : "";
      this.state.set({ [name]: text.value });
    });
    text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || name === "passage") return;
      event.preventDefault();
      this.send();
    });
    return make("div", { className: "typed" }, text, note);
  }

  /** What was answered before another language or view was chosen; or what a link asks for. */
  start() {
    const { session, state, run } = this;
    if (!run) {
      this.result.hidden = false;
      this.answer.textContent = this.say("noAskable");
    } else if (session.asked?.run === run.name) {
      if (session.asked.answer) this.show();
      else this.ask(session.asked);
    } else if (!run.takes) return;
    else if (state.get("example")) this.ask({ example: true });
    else if (this.readMissing() === undefined && WRITTEN[run.takes]) this.send(); // a link
    else if (run.example && !state.get("passage") && !state.get("asked")) this.ask({ example: true }); // a first visit
  }

  /** The box that is still empty, if one is. */
  readMissing() {
    return [...this.form.querySelectorAll("textarea")].find(({ value }) => !value.trim());
  }

  takeFile(file) {
    const error = findSizeError(file, this.server.limits.file, this.say("smallerFile"), this.say);
    if (error) return this.report(error);
    this.session.file = file;
    return this.send();
  }

  send() {
    const { run, state, session } = this;
    const content = WRITTEN[run.takes] ? new Blob([state.get(WRITTEN[run.takes])]) : session.file;
    const first = this.readMissing();
    if (content && !first) return this.askAnew({ content });
    return (first ?? this.form.querySelector("button.primary")).focus();
  }

  /** Something else, of which nothing is picked yet. */
  askAnew(question) {
    this.state.go({ example: question.example ? "yes" : "", pick: "", look: "", site: -1, head: -1 });
    return this.ask(question);
  }

  async ask({ content, example = false }) {
    const { run, state, session } = this;
    const asked = { run: run.name, content, example };
    session.asked = asked;
    const values = example ? { example: "yes" } : run.questioned ? { question: state.get("question") } : {};
    setBusy(this.form, true);
    if (this.seen.hidden) this.showWorking();
    try {
      const path = `runs/${encodeURIComponent(run.name)}/ask?${new URLSearchParams(values)}`;
      const answer = await postFile(path, example ? new Blob([]) : content);
      if (session.asked !== asked) return;
      asked.answer = answer;
      this.fill(answer);
      await this.show();
    } catch (error) {
      if (session.asked !== asked) return; // something else was asked since
      delete session.asked;
      if (this.seen.hidden) this.result.hidden = true; // nothing was answered before
      this.report(error);
    } finally {
      if ((session.asked ?? asked) === asked) setBusy(this.form, false);
    }
  }

  /** A first answer may take seconds, while the model is loaded. */
  showWorking() {
    this.answer.replaceChildren(make("p", { className: "note", textContent: this.say("working") }));
    this.result.hidden = false;
  }

  /** An example fills the boxes, so that it can be changed and asked again. */
  fill({ given, beside }) {
    for (const [name, value] of Object.entries(given ?? {})) {
      this.state.set({ [name]: value });
      const box = this.form.querySelector(`textarea[name=${name}]`);
      if (box) box.value = value;
    }
    if (this.session.asked.example && beside?.kind === "image") {
      const bytes = Uint8Array.from(atob(beside.image.split(",")[1]), (sign) => sign.charCodeAt(0));
      this.session.file = new Blob([bytes], { type: "image/png" });
    }
  }

  async show() {
    const { question, shares, notes = [], attention, beside, begin, facts, ...found } = this.session.asked.answer;
    const { text, more } = readAnswer(found.text, this.run.task, this.say);
    this.passage.show(this.run.takes === "passage" && begin !== undefined ? { passage: this.state.get("passage"), begin, length: text.length } : undefined);
    const others = Object.entries(shares ?? {}).map(([name, share]) => `${name} ${(100 * share).toFixed(1)} %`).join(" · ");
    const lines = [this.session.asked.example && question, ...more, others, ...notes].filter(Boolean);
    this.answer.replaceChildren(make("p", { className: "answer-text", dir: "auto", textContent: text || "∅" }),
      ...lines.map((line) => make("p", { className: "note", dir: "auto", textContent: line })));
    const sites = attention && localizeRows(createSites(attention), this.run.task, this.say);
    await this.facts.show(facts && sites?.[0], facts);
    this.result.hidden = this.seen.hidden = false;
    this.nothing.hidden = Boolean(attention);
    if (attention) await this.panel.show(sites, { beside: beside ?? undefined });
    else this.panel.hide();
  }

  update() {
    this.panel.update();
  }

  destroy() {
    this.chooser?.destroy();
  }
}
