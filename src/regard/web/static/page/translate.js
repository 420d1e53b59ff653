// Type a sentence: its translation comes token by token, with where the model looked.

import { make } from "../controls.js";
import { makeVisible } from "../labels.js";
import { createAttentionPanel } from "../panel.js";
import { createLocalSite } from "../sites.js";
import { createFormatter } from "../words.js";
import { createAnswer } from "./answer.js";
import { postJson, streamEvents } from "./api.js";
import { createBar } from "./bar.js";
import { findPath, joinWords } from "./branches.js";
import { createComparison } from "./comparison.js";
import { createHints } from "./hints.js";
import { createSites } from "./sources.js";
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
    if (this.runs.length) {
      this.build(element);
      this.start();
    } else element.append(make("p", { className: "card", textContent: this.say(server.runs.length ? "notReady" : "noRuns") }));
  }

  get runs() {
    return findTranslators(this.server);
  }

  build(element) {
    const { say, state, language, report, server, runs } = this;
    this.bar = createBar({ state, language, server, runs, run: this.findRun() }, {
      onsend: (text) => this.send(text), onstop: () => this.asking?.abort(), onagainst: () => this.compare(),
      onchange: (changes, again) => this.change(changes, again),
    });
    this.nothing = make("p", { className: "note", hidden: true });
    this.result = make("section", { className: "card result", hidden: true, ariaLabel: say("translation") });
    this.seen = make("section", { className: "card", hidden: true }, make("h2", { textContent: say("attention") }), this.nothing);
    this.compared = make("section", { className: "card", hidden: true });
    this.treeCard = make("section", { className: "card", hidden: true }, make("h2", { textContent: say("tree") }),
      make("p", { className: "note", textContent: say("treeHelp") }));
    this.hints = createHints(this.session, language);
    element.append(this.bar.element, this.hints.element, this.result, this.seen, this.compared, this.treeCard);
    this.bar.grow();
    this.answer = createAnswer(this.result, { language, onchoose: (place) => this.choose(place) });
    this.panel = createAttentionPanel(this.seen, { state, language, report, names: ["target", "source"], mask: this.createMask(), onshown: (panel) => this.comparison.showPanel(panel) });
    this.tree = createBeamTree(this.treeCard, { language, onchoose: (number) => this.chooseNode(number) });
    this.comparison = createComparison(this.compared, { state, language, report });
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
    if ("run" in changes) this.state.go(changes);
    else this.state.set(changes);
    clearTimeout(this.soon);
    if (again && this.state.get("text").trim()) this.soon = setTimeout(() => this.ask(), pause);
  }

  send(text) {
    const same = text === this.state.get("text");
    this.state.go(same ? { text } : { text, masked: "", hypothesis: 0, pick: "", look: "" });
    this.hints.hide();
    this.ask();
  }

  /** What was answered before; what the address asks for; or, on a first visit, an example. */
  start() {
    const { sample } = this.findRun();
    if (!this.state.get("text").trim() && sample && !this.session.answer) {
      this.state.set({ text: sample });
      this.bar.setText(sample);
      this.hints.show();
    }
    if (this.session.answer?.key === this.encodeQuestion()) this.finish();
    else if (this.state.get("text").trim()) this.ask();
  }

  readQuestion() {
    const get = this.state.get;
    return {
      run: this.findRun().name, text: get("text").slice(0, this.server.limits.characters), masked: parsePlaces(get("masked")), masking: get("masking"),
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
    const answer = { key: this.encodeQuestion(), tokens: [], unknown: [], cut: 0, room: Infinity, branches: new Map(), hypotheses: [], before: undefined };
    if (before?.hypotheses.length && JSON.parse(before.key).text === this.state.get("text")) answer.before = before.hypotheses[0].text;
    this.bar.setBusy(true);
    if (!before) {
      this.result.hidden = false;
      this.answer.wait(this.state.get("text"));
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
        this.bar.setBusy(false);
      }
    }
  }

  applyEvent(answer, name, data) {
    if (name === "source" || name === "done") Object.assign(answer, data);
    if (name !== "step") return;
    for (const branch of data.branches) answer.branches.set(branch.number, branch);
    const newest = data.branches.filter(({ score }) => score === null);
    const best = newest.reduce((most, one) => (!most || one.log_prob > most.log_prob ? one : most), undefined);
    if (best) this.showPartial(answer, findPath(answer.branches, best.number));
  }

  /** The best so far, while the search goes on. */
  showPartial(answer, path) {
    this.result.hidden = false;
    this.answer.showText(joinWords(answer.branches, path));
    this.showPath(answer, path, true);
  }

  showPath(answer, path, passing) {
    const steps = path.map((number) => answer.branches.get(number));
    if (!steps.length || !steps[0].weights) return;
    this.showPanel(passing);
    this.panel.show([createLocalSite("decoder", steps.map(({ weights }) => weights), steps.map(({ word }) => word), answer.tokens)], { passing });
  }

  showPanel(passing) {
    this.seen.hidden = false;
    this.seen.toggleAttribute("data-passing", passing);
    this.nothing.hidden = true;
  }

  async finish() {
    const { answer } = this.session;
    this.result.hidden = false;
    const place = Math.min(this.state.get("hypothesis"), answer.hypotheses.length - 1);
    if (place >= 0) await this.choose(place);
  }

  async choose(place) {
    const { answer } = this.session;
    const hypothesis = answer.hypotheses[place];
    this.state.set({ hypothesis: place });
    this.answer.showHypotheses(answer.hypotheses, place, this.listNotes(answer, hypothesis));
    this.tree.show(answer.branches, { hypotheses: answer.hypotheses, chosen: hypothesis.path });
    await this.showAttention(hypothesis);
    this.treeCard.hidden = answer.branches.size < 2 || this.state.get("beam") === 1 || this.state.get("temperature") > 0;
  }

  /** What is worth knowing about an answer: what changed, what was unknown, and what was cut. */
  listNotes({ before, hypotheses, unknown, cut, tokens, room }, { path }) {
    const { say } = this;
    return [
      before !== undefined && before !== hypotheses[0].text && say("before", { text: before }),
      unknown.length && say("unknown", { words: unknown.map(makeVisible).join(", ") }),
      cut && say("cutSource", { cut, most: tokens.length - 1 }),
      path.length >= room && say("cutTarget", { most: room }),
    ].filter(Boolean);
  }

  /** All layers and heads of a hypothesis. */
  async showAttention(hypothesis) {
    const { run, text, masked, masking } = this.readQuestion();
    const turn = (this.looking = {});
    try {
      const found = await postJson("attention", { run, text, masked, masking, tokens: hypothesis.tokens });
      if (turn !== this.looking) return;
      await this.panel.show(createSites(found));
      this.showPanel(false);
      this.compare();
    } catch (error) {
      if (turn !== this.looking) return;
      const blind = /a model without attention/.test(error.message);
      this.showPanel(false);
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
    this.tree.show(answer.branches, { hypotheses: answer.hypotheses, chosen: path });
    this.answer.showText(`${joinWords(answer.branches, path)} …`);
    this.showPath(answer, path, false);
    return undefined;
  }

  compare() {
    const { answer } = this.session;
    const [other, own] = [this.state.get("with"), this.findRun().name];
    const hypothesis = answer?.hypotheses[this.state.get("hypothesis")];
    if (!hypothesis || other === own || !this.runs.some(({ name }) => name === other)) return this.comparison.hide();
    return this.comparison.start(this.panel, { ...this.readQuestion(), run: other }, hypothesis.text, own);
  }

  update() {
    this.panel?.update();
    this.comparison?.update();
  }

  destroy() {
    this.asking?.abort();
    clearTimeout(this.soon);
  }
}
