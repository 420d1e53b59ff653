// What is shown, as it stands behind # in the address: a link restores the view.

import { PANEL_STATE } from "../panelstate.js";

const DEFAULTS = {
  view: "", run: "", with: "", text: "", beam: 5, temperature: 0, seed: 0, length: 1, masked: "", masking: "attention",
  hypothesis: 0, file: "", kept: "", ...PANEL_STATE,
  passage: "", question: "", asked: "", example: "",
  runs: "",
  lang: "", theme: "",
};
const LASTING = ["lang", "theme"]; // what Back and Forward leave as it is

/** A state that knows its address: `state.get(name)`, `state.set({ … })`, `state.on(listener)`.
 *
 * `state.go({ … })` is a step that Back undoes: another view, run, text or file. */
export function createHashState() {
  const values = { ...DEFAULTS };
  const listeners = new Set();
  readHash();
  window.addEventListener("hashchange", () => {
    if (location.hash.slice(1) === writeHash()) return;
    const lasting = Object.fromEntries(LASTING.map((name) => [name, values[name]]));
    Object.assign(values, DEFAULTS, lasting);
    readHash();
    for (const listener of listeners) listener("address");
  });

  function readHash() {
    for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
      if (!(name in DEFAULTS)) continue;
      const number = Number(text);
      if (typeof DEFAULTS[name] !== "number") values[name] = text;
      else if (Number.isFinite(number)) values[name] = number;
    }
  }

  function writeHash() {
    const changed = Object.entries(values).filter(([name, value]) => value !== DEFAULTS[name]);
    return new URLSearchParams(changed.map(([name, value]) => [name, String(value)])).toString();
  }

  return {
    get: (name) => values[name],
    set(changes) {
      Object.assign(values, changes);
      history.replaceState(null, "", `#${writeHash()}`);
    },
    go(changes) {
      const before = writeHash();
      Object.assign(values, changes);
      if (writeHash() !== before) history.pushState(null, "", `#${writeHash()}`);
    },
    on: (listener) => listeners.add(listener),
  };
}

/** Places as text and back: "3,5". */
export function parsePlaces(text) {
  return text.split(",").filter((part) => /^\d+$/.test(part)).map(Number);
}
