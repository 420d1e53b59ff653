// Ask a run about an image, a sound or a passage, and see where it looked for each word.

import { createButton, createChoice, make } from "../controls.js";
import { createAttentionPanel } from "../panel.js";
import { createFormatter } from "../words.js";
import { postFile } from "./api.js";
import { createFileChooser, findSizeError } from "./files.js";
import { createSites } from "./sources.js";

const ACCEPTED = { image: "image/*", sound: "audio/*,.wav,.flac,.ogg,.mp3" };
const NAMES = { image: ["said", "regions"], sound: ["said", "stretches"], passage: ["passage", "question"] };

/** The runs that can be asked, of all that are served. */
export function findAskable({ runs }) {
  return runs.filter(({ takes, ready }) => takes && ready);
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
    if (run.takes === "passage") this.form.append(this.buildTextArea("passage", this.server.limits.passage, 5));
    else {
      const name = say(run.takes === "image" ? "chooseImage" : "chooseSound");
      this.chooser = createFileChooser(this.form, { name, hint: say("dropHere"), accept: ACCEPTED[run.takes], onfile: (file) => this.takeFile(file) });
      this.form.append(this.chooser.element);
    }
    if (run.questioned) this.form.append(this.buildTextArea("question", this.server.limits.characters, 1));
    const buttons = [];
    if (run.questioned) buttons.push(make("button", { type: "submit", className: "primary", textContent: say("ask") }));
    if (run.example) buttons.push(createButton(say("example"), () => this.askAnew({ example: true })));
    if (buttons.length) this.form.append(make("p", { className: "controls" }, ...buttons));
    this.form.append(make("p", { className: "note", textContent: say(`${run.takes}Help`) }));
    return this.form;
  }

  buildRunChoice() {
    const list = createChoice((name) => {
      this.state.set({ run: name, site: -1, head: -1, pick: "", look: "" });
      this.session.redraw(); // another kind of run has another form
    });
    list.label(this.say("run"));
    list.set(this.runs.map(({ name, task }) => [name, `${name} · ${task}`]), this.run.name);
    return list.element;
  }

  buildTextArea(name, most, rows) {
    const text = make("textarea", { rows, maxLength: most, value: this.state.get(name), placeholder: this.say(`${name}Hint`), dir: "auto", ariaLabel: this.say(name) });
    text.addEventListener("input", () => this.state.set({ [name]: text.value }));
    text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || name === "passage") return;
      event.preventDefault();
      this.send();
    });
    return make("div", { className: "typed" }, text);
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
    } else if (state.get("example")) this.ask({ example: true });
  }

  takeFile(file) {
    const error = findSizeError(file, this.server.limits.file, this.say("smallerFile"));
    if (error) return this.report(error);
    this.session.file = file;
    return this.send();
  }

  send() {
    const { run, state, session } = this;
    const content = run.takes === "passage" ? new Blob([state.get("passage")]) : session.file;
    const missing = (run.takes === "passage" ? !state.get("passage").trim() : !content) || (run.questioned && !state.get("question").trim());
    if (!missing) return this.askAnew({ content });
    const first = [...this.form.querySelectorAll("textarea")].find(({ value }) => !value.trim());
    return (first ?? this.form.querySelector("button.primary")).focus();
  }

  /** Something else, of which nothing is picked yet. */
  askAnew(question) {
    this.state.set({ example: question.example ? "yes" : "", pick: "", look: "", site: -1, head: -1 });
    return this.ask(question);
  }

  async ask({ content, example = false }) {
    const { run, state, session } = this;
    const asked = { run: run.name, content, example };
    session.asked = asked;
    const values = example ? { example: "yes" } : run.questioned ? { question: state.get("question") } : {};
    this.form.toggleAttribute("aria-busy", true);
    try {
      const path = `runs/${encodeURIComponent(run.name)}/ask?${new URLSearchParams(values)}`;
      const answer = await postFile(path, example ? new Blob([]) : content);
      if (session.asked !== asked) return;
      asked.answer = answer;
      await this.show();
    } catch (error) {
      if (session.asked === asked) delete session.asked;
      this.report(error);
    } finally {
      this.form.toggleAttribute("aria-busy", false);
    }
  }

  async show() {
    const { text, question, shares, notes = [], looked, beside } = this.session.asked.answer;
    const others = Object.entries(shares ?? {}).map(([name, share]) => `${name} ${(100 * share).toFixed(1)} %`).join(" · ");
    const lines = [this.session.asked.example && question, others, ...notes].filter(Boolean);
    this.answer.replaceChildren(make("p", { className: "said", dir: "auto", textContent: text || "∅" }),
      ...lines.map((line) => make("p", { className: "note", dir: "auto", textContent: line })));
    this.result.hidden = this.seen.hidden = false;
    this.nothing.hidden = Boolean(looked);
    if (looked) await this.panel.show(createSites(looked), { beside: beside ?? undefined });
    else this.panel.hide();
  }

  update() {
    this.panel.update();
  }

  destroy() {
    this.chooser?.destroy();
  }
}
