// Type a sentence: its translation comes token by token, with where the model looked.

import { createChoice, make } from "../controls.js";
import { makeVisible } from "../labels.js";
import { createFormatter } from "../words.js";
import { postJson, streamEvents } from "./api.js";
import { createAttentionPanel, createButton } from "./attention.js";
import { createComparison } from "./comparison.js";
import { createLocalSite, createSites } from "./sources.js";
import { parsePlaces } from "./state.js";
import { createBeamTree } from "./tree.js";

const PAUSE = 350; // milliseconds after the last change of an option

/** The runs that translate, of all that are served. */
export function findTranslators({ runs }) {
  return runs.filter(({ task, ready }) => task === "translation" && ready);
}

export function createTranslateView(element, context) {
  return new TranslateView(element, context);
}

class TranslateView {
  constructor(element, { state, language, server, report, session }) {
    Object.assign(this, { state, language, server, report, session, say: createFormatter(language) });
    this.build(element);
    this.start();
  }

  get runs() {
    return findTranslators(this.server);
  }

  build(element) {
    const { say } = this;
    this.form = this.buildForm();
    this.answer = make("div", { className: "answer", ariaLive: "polite" });
    this.others = make("div", { className: "hypotheses", role: "group", ariaLabel: say("hypotheses") });
    this.nothing = make("p", { className: "note", hidden: true });
    this.seen = make("section", { className: "card", hidden: true }, make("h2", { textContent: say("attention") }), this.nothing);
    this.compared = make("section", { className: "card", hidden: true });
    const grown = make("div", { className: "scroll", tabIndex: -1 });
    this.treeCard = make("section", { className: "card", hidden: true }, make("h2", { textContent: say("tree") }),
      make("p", { className: "note", textContent: say("treeHelp") }), grown);
    this.result = make("section", { className: "card", hidden: true }, make("h2", { textContent: say("translation") }), this.answer, this.others);
    element.append(this.form, this.result, this.seen, this.compared, this.treeCard);
    const { state, language, report } = this;
    this.panel = createAttentionPanel(this.seen, { state, language, report, mask: this.createMask(), onshown: (panel) => this.comparison.showPanel(panel) });
    this.tree = createBeamTree(grown, { language, onchoose: (number) => this.chooseNode(number) });
    this.comparison = createComparison(this.compared, { state, language, report });
  }

  buildForm() {
    const { say, state, server } = this;
    const names = this.runs.map(({ name, about }) => [name, describeRun(name, about)]);
    this.run = createChoice((value) => {
      this.change({ run: value, hypothesis: 0, site: -1, head: -1, pick: "", masked: "" });
      this.text.placeholder = this.chooseHint();
      this.sample.hidden = !this.findRun().sample;
    });
    this.run.label(say("run"));
    this.run.set(names, this.findRun()?.name ?? "");
    this.against = createChoice((value) => { this.state.set({ with: value }); this.compare(); });
    this.against.label(say("against"));
    this.against.set([["", say("nobody")], ...names], names.some(([name]) => name === state.get("with")) ? state.get("with") : "");
    this.against.element.hidden = names.length < 2;
    this.text = make("textarea", { rows: 2, maxLength: server.limits.characters, placeholder: this.chooseHint(), value: state.get("text"), dir: "auto", ariaLabel: say("text") });
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    this.sample = createButton(say("example"), () => { this.text.value = this.findRun().sample; this.send(); });
    this.sample.hidden = !this.findRun()?.sample;
    this.go = make("button", { type: "submit", className: "primary", textContent: say("translate") });
    const form = make("form", { className: "card ask" },
      make("div", { className: "controls" }, this.run.element, this.against.element, this.sample),
      make("div", { className: "typed" }, this.text, this.go), this.buildOptions());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.asking) this.asking.abort();
      else this.send();
    });
    return form;
  }

  chooseHint() {
    const { sample } = this.findRun() ?? {};
    return sample ? this.say("writeLike", { sample }) : this.say("write");
  }

  buildOptions() {
    const { say, state, server } = this;
    const number = (name, most, step, hint) => {
      const input = make("input", { type: "number", min: name === "beam" ? 1 : 0, max: most, step, value: state.get(name), title: hint ?? "" });
      input.addEventListener("input", () => {
        if (input.value === "" || !input.checkValidity()) return;
        this.change({ [name]: Number(input.value), hypothesis: 0, pick: "" });
      });
      return make("label", { className: "regard-control" }, make("span", { textContent: say(name) }), input);
    };
    this.mode = createChoice((value) => this.change({ masking: value, hypothesis: 0 }, parsePlaces(state.get("masked")).length > 0));
    this.mode.label(say("masking"));
    this.mode.set([["attention", say("maskAttention")], ["input", say("maskInput")]], state.get("masking"));
    return make("div", { className: "controls options" }, number("beam", server.limits.beam, 1), number("temperature", 5, 0.1, say("greedyHint")),
      number("seed", 2147483647, 1), number("length", 5, 0.1), this.mode.element);
  }

  findRun() {
    return this.runs.find(({ name }) => name === this.state.get("run")) ?? this.runs[0];
  }

  createMask() {
    const { state } = this;
    const set = (places) => this.change({ masked: [...places].sort((a, b) => a - b).join(), hypothesis: 0 }, true, 0);
    return {
      places: () => parsePlaces(state.get("masked")),
      length: () => this.session.answer?.tokens.length,
      toggle(place) {
        const places = new Set(parsePlaces(state.get("masked")));
        if (!places.delete(place)) places.add(place);
        set(places);
      },
      clear: () => set([]),
    };
  }

  /** Other options: what is there is asked for again, a moment later. */
  change(changes, again = true, pause = PAUSE) {
    this.state.set(changes);
    clearTimeout(this.soon);
    if (again && this.state.get("text").trim()) this.soon = setTimeout(() => this.ask(), pause);
  }

  send() {
    const text = this.text.value;
    if (!text.trim()) return this.text.focus();
    const same = text === this.state.get("text");
    this.state.set(same ? { text } : { text, masked: "", hypothesis: 0, pick: "", look: "" });
    this.ask();
  }

  start() {
    const run = this.findRun();
    if (!run) {
      this.form.hidden = true;
      this.result.hidden = false;
      this.answer.textContent = this.say(this.server.runs.length ? "notReady" : "noRuns");
      return;
    }
    if (this.session.answer?.key === this.encodeQuestion()) this.finish();
    else if (this.state.get("text").trim()) this.ask();
  }

  readQuestion() {
    const get = this.state.get;
    return {
      run: this.findRun().name, text: get("text"), masked: parsePlaces(get("masked")), masking: get("masking"),
      beam: get("beam"), temperature: get("temperature"), seed: get("seed"), length: get("length"),
    };
  }

  encodeQuestion() {
    return JSON.stringify(this.readQuestion());
  }

  async ask() {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    const before = this.session.answer;
    const answer = { key: this.encodeQuestion(), tokens: [], unknown: [], branches: new Map(), hypotheses: [], before: undefined };
    if (before?.hypotheses.length && JSON.parse(before.key).text === this.state.get("text")) answer.before = before.hypotheses[0].text;
    this.setBusy(true);
    if (!before) {
      this.result.hidden = false;
      this.answer.replaceChildren(make("p", { className: "note", textContent: this.say("working") }));
    }
    try {
      for await (const { name, data } of streamEvents("translate", this.readQuestion(), { signal: asking.signal })) {
        if (asking !== this.asking) return;
        this.applyEvent(answer, name, data);
      }
      this.session.answer = answer;
      await this.finish();
    } catch (error) {
      if (!before) this.result.hidden = true;
      if (error.name !== "AbortError") this.report(error);
    } finally {
      if (asking === this.asking) {
        this.asking = undefined;
        this.setBusy(false);
      }
    }
  }

  applyEvent(answer, name, data) {
    if (name === "source") Object.assign(answer, data);
    if (name === "done") answer.hypotheses = data.hypotheses;
    if (name !== "step") return;
    for (const branch of data.branches) answer.branches.set(branch.number, branch);
    const newest = data.branches.filter(({ score }) => score === null);
    const best = newest.reduce((most, one) => (!most || one.log_prob > most.log_prob ? one : most), undefined);
    if (best) this.showPartial(answer, findPath(answer.branches, best.number));
  }

  /** The best so far, while the search goes on. */
  showPartial(answer, path) {
    this.result.hidden = false;
    this.answer.replaceChildren(make("p", { className: "said", dir: "auto", textContent: joinWords(answer.branches, path) }));
    this.others.replaceChildren();
    this.showPath(answer, path, true);
  }

  showPath(answer, path, passing) {
    const steps = path.map((number) => answer.branches.get(number));
    if (!steps.length || !steps[0].looked) return;
    this.seen.hidden = false;
    this.nothing.hidden = true;
    this.panel.show([createLocalSite("decoder", steps.map(({ looked }) => looked), steps.map(({ word }) => word), answer.tokens)], { passing });
  }

  setBusy(now) {
    this.go.textContent = this.say(now ? "stop" : "translate");
    this.form.toggleAttribute("aria-busy", now);
  }

  async finish() {
    const { answer } = this.session;
    this.result.hidden = false;
    this.treeCard.hidden = answer.hypotheses.length + answer.branches.size < 2 || this.state.get("beam") === 1 || this.state.get("temperature") > 0;
    const place = Math.min(this.state.get("hypothesis"), answer.hypotheses.length - 1);
    if (place >= 0) await this.choose(place);
  }

  async choose(place) {
    const { answer } = this.session;
    const { say } = this;
    const hypothesis = answer.hypotheses[place];
    this.state.set({ hypothesis: place });
    const notes = [];
    if (answer.before !== undefined && answer.before !== answer.hypotheses[0].text) notes.push(say("before", { text: answer.before }));
    if (answer.unknown.length) notes.push(say("unknown", { words: answer.unknown.map(makeVisible).join(", ") }));
    this.answer.replaceChildren(make("p", { className: "said", dir: "auto", textContent: hypothesis.text || "∅" }),
      ...notes.map((text) => make("p", { className: "note", dir: "auto", textContent: text })));
    this.others.replaceChildren(...answer.hypotheses.map(({ text, score }, other) => {
      const one = createButton("", () => this.choose(other), { className: "hypothesis" });
      one.append(make("span", { className: "score", textContent: say("score", { score: score.toFixed(2) }) }), make("bdi", { textContent: text || "∅" }));
      one.setAttribute("aria-pressed", String(other === place));
      return one;
    }));
    this.others.hidden = answer.hypotheses.length < 2;
    this.tree.show(answer.branches, { best: answer.hypotheses[0].path, chosen: hypothesis.path });
    await this.showAttention(hypothesis);
  }

  /** All layers and heads of a hypothesis. */
  async showAttention(hypothesis) {
    const { run, text, masked, masking } = this.readQuestion();
    const turn = (this.looking = {});
    try {
      const found = await postJson("attention", { run, text, masked, masking, tokens: hypothesis.tokens });
      if (turn !== this.looking) return;
      this.seen.hidden = false;
      this.nothing.hidden = true;
      await this.panel.show(createSites(found));
      this.compare();
    } catch (error) {
      if (turn !== this.looking) return;
      const blind = /a model without attention/.test(error.message);
      this.seen.hidden = !blind;
      this.nothing.hidden = !blind;
      this.nothing.textContent = this.say("nothingLooked");
      this.panel.hide();
      if (!blind) this.report(error);
    }
  }

  chooseNode(number) {
    const { answer } = this.session;
    const place = answer.hypotheses.findIndex(({ path }) => path.at(-1) === number);
    if (place >= 0) return this.choose(place);
    const path = findPath(answer.branches, number);
    this.looking = {};
    this.tree.show(answer.branches, { best: answer.hypotheses[0].path, chosen: path });
    this.answer.replaceChildren(make("p", { className: "said", dir: "auto", textContent: `${joinWords(answer.branches, path)} …` }));
    this.showPath(answer, path, false);
    return undefined;
  }

  compare() {
    const { answer } = this.session;
    const other = this.state.get("with");
    const hypothesis = answer?.hypotheses[this.state.get("hypothesis")];
    if (!other || !hypothesis) return this.comparison.hide();
    return this.comparison.start(this.panel, { ...this.readQuestion(), run: other }, hypothesis.text, this.readQuestion().run);
  }

  update() {
    this.panel.update();
    this.comparison.update();
  }

  destroy() {
    this.asking?.abort();
    clearTimeout(this.soon);
  }
}

function describeRun(name, { encoder, decoder, score, source, target } = {}) {
  const parts = [encoder === decoder ? decoder : `${encoder} → ${decoder}`, score].filter(Boolean);
  const sides = source && target ? `${source} → ${target}` : "";
  return [name, sides, parts.join(", ")].filter(Boolean).join(" · ");
}

function findPath(branches, number) {
  const path = [];
  for (let at = number; at !== -1; at = branches.get(at).parent) path.unshift(at);
  return path;
}

/** Words as they are read: ▁ begins a word. */
function joinWords(branches, path) {
  const words = path.map((number) => branches.get(number)).filter(({ score }) => score === null).map(({ word }) => word);
  const text = words.join("");
  return text.includes("▁") ? text.replaceAll("▁", " ").trim() : words.join("");
}
