// The question to a translator, in one line: the run, the text, and options that open. A value out of bounds is set to the bound, with a note.
//
//   const bar = createBar(context, { onsend(text), onstop(), onchange(changes, again), onagainst() });
//   bar.setBusy(now); bar.setText(text); bar.grow();   // the last when it is on the page

import { createButton, createChoice, make, setBusy } from "../controls.js";
import { createFormatter } from "../words.js";
import { parsePlaces } from "./state.js";

/** The largest value of each option, and its step. */
function listOptions({ beam }) {
  return { beam: [1, beam, 1], temperature: [0, 5, 0.1], seed: [0, 2147483647, 1], length: [0, 5, 0.1] };
}

/** An option within its bounds, and the sentence that says what was changed; undefined if nothing was. */
function clampOption(name, value, [least, most, step], say) {
  const whole = step === 1 ? Math.round(value) : value;
  const clamped = Math.min(most, Math.max(least, whole));
  return { clamped, note: clamped === value ? undefined : say("clamped", { name: say(name), value, used: clamped, least, most }) };
}

export function createBar({ state, language, server, runs, run }, { onsend, onstop, onchange, onagainst }) {
  const say = createFormatter(language);
  const notes = make("div", { className: "notes", role: "status" });
  const notices = new Map(); // sentences about what was changed, by option
  let chosen = run;
  let busy = false;

  const most = server.limits.characters;
  const text = make("textarea", { rows: 1, dir: "auto", ariaLabel: say("text"), value: state.get("text") });
  const go = make("button", { type: "submit", className: "primary", textContent: say("translate") });
  const sample = createButton(say("example"), () => { text.value = chosen.sample; send(); });
  const form = make("form", { className: "card bar" }, buildRuns(), make("div", { className: "typed" }, text, go, sample), buildOptions(), notes);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (busy) onstop();
    else send();
  });
  text.addEventListener("input", () => { clampText(); grow(); });
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });

  function send() {
    if (text.value.trim()) onsend(text.value);
    else text.focus();
  }

  function buildRuns() {
    const names = runs.map(({ name, about }) => [name, describeRun(name, about)]);
    const list = createChoice((value) => {
      chosen = runs.find(({ name }) => name === value);
      showRun();
      onchange({ run: value, hypothesis: 0, site: -1, head: -1, pick: "", masked: "" }, true);
    });
    list.label(say("run"));
    list.set(names, chosen.name);
    list.element.hidden = names.length < 2;
    return list.element;
  }

  function buildAgainst() {
    const others = runs.filter(({ name }) => name !== chosen.name).map(({ name }) => [name, name]);
    const list = createChoice((value) => { state.set({ with: value }); onagainst(); });
    list.label(say("against"));
    list.set([["", say("nobody")], ...others], others.some(([name]) => name === state.get("with")) ? state.get("with") : "");
    list.element.hidden = !others.length;
    return list.element;
  }

  function buildOptions() {
    const limits = listOptions(server.limits);
    const numbers = Object.entries(limits).map(([name, bounds]) => buildNumber(name, bounds));
    const mode = createChoice((value) => onchange({ masking: value, hypothesis: 0 }, parsePlaces(state.get("masked")).length > 0));
    mode.label(say("masking"));
    mode.set([["attention", say("maskAttention")], ["input", say("maskInput")]], state.get("masking"));
    const against = make("span", { className: "against" }, buildAgainst());
    return make("details", { className: "options", open: Boolean(state.get("with")) }, make("summary", { textContent: say("options") }),
      make("div", { className: "controls" }, against, ...numbers, mode.element));
  }

  function buildNumber(name, bounds) {
    const [min, max, step] = bounds;
    const input = make("input", { type: "number", min, max, step, value: state.get(name), title: name === "temperature" ? say("greedyHint") : "" });
    clampNumber(name, input, state.get(name), bounds);
    input.addEventListener("input", () => {
      if (input.value === "" || !input.checkValidity()) return; // perhaps it is only half written
      clampNumber(name, input, Number(input.value), bounds);
      onchange({ [name]: Number(input.value), hypothesis: 0, pick: "" }, true);
    });
    input.addEventListener("change", () => {
      if (input.value !== "" && input.checkValidity()) return;
      clampNumber(name, input, input.value === "" ? state.get(name) : Number(input.value), bounds);
      onchange({ [name]: Number(input.value), hypothesis: 0, pick: "" }, true);
    });
    return make("label", { className: "regard-control" }, make("span", { textContent: say(name) }), input);
  }

  function clampNumber(name, input, value, bounds) {
    const { clamped, note } = clampOption(name, value, bounds, say);
    if (input.value !== String(clamped)) input.value = clamped;
    state.set({ [name]: clamped });
    setNote(name, note);
  }

  function clampText() {
    const long = text.value.length;
    if (long > most) text.value = text.value.slice(0, most);
    setNote("text", long > most ? say("cutText", { given: long.toLocaleString(), most: most.toLocaleString() }) : undefined);
  }

  function setNote(name, note) {
    if (note) notices.set(name, note);
    else notices.delete(name);
    notes.replaceChildren(...[...notices.values()].map((one) => make("p", { className: "note changed", textContent: one })));
  }

  function showRun() {
    text.placeholder = chosen.sample ? say("writeLike", { sample: chosen.sample }) : say("write");
    sample.hidden = !chosen.sample;
    form.querySelector(".against")?.replaceChildren(buildAgainst());
  }

  /** As many lines as the text needs, up to six. */
  function grow() {
    text.rows = 1;
    while (text.rows < 6 && text.scrollHeight > text.clientHeight) text.rows += 1;
  }

  clampText();
  showRun();
  return {
    element: form,
    grow,
    setText(value) {
      text.value = value;
      grow();
    },
    setBusy(now) {
      busy = now;
      go.textContent = say(now ? "stop" : "translate");
      setBusy(form, now);
    },
  };
}

function describeRun(name, { encoder, decoder, score, source, target } = {}) {
  const parts = [encoder === decoder ? decoder : `${encoder} → ${decoder}`, score].filter(Boolean);
  const sides = source && target ? `${source} → ${target}` : "";
  return [name, sides, parts.join(", ")].filter(Boolean).join(" · ");
}
