// What the keys are parts of: a picture or a sound. Where a query looked stands out; a picture has a small copy for each.
//
//   const view = createMediaView(element, { onchoose(row) });
//   view.show(beside, { source, rows, picked, name, dark, language });   // `beside` as regard.inspect.draw.chapters writes it

import { make } from "./controls.js";
import { createOverlay, createSpectrogram } from "./overlay.js";
import { makeVisible } from "./labels.js";
import { averageRows, readLine, unpackNumbers } from "./tables.js";

const MAX_COPIES = 60; // queries that have a small copy, at most

export function createMediaView(element, { onchoose }) {
  element.classList.add("regard-beside");
  let shown; // what the drawings are of
  let drawing;
  let frames; // { rows, all: [{ button, drawing }] }

  async function show(beside, options) {
    const { source } = options;
    element.hidden = !beside || source.tiled || source.columns !== beside.keys;
    if (element.hidden) return;
    if (shown !== beside) await build(beside);
    if (shown !== beside || !drawing) return;
    const row = options.picked?.axis === "row" ? options.picked.place : undefined;
    drawing.update({ ...options, amounts: scaleToLargest(row === undefined ? averageRows(source) : readLine(source, "row", row)) });
    if (beside.kind === "image") showCopies(beside, options, row);
  }

  async function build(beside) {
    shown = beside;
    drawing = frames = undefined;
    const sound = beside.kind === "sound" && { ...beside, values: await unpackNumbers(beside.values) };
    if (shown !== beside) return; // another came while this was unpacked
    element.replaceChildren();
    drawing = sound ? createSpectrogram(element, sound) : createOverlay(element, beside);
  }

  function showCopies(beside, { source, rows, ...options }, chosen) {
    if (frames?.rows !== rows) {
      frames?.place.remove();
      frames = { rows, place: make("div", { className: "regard-frames" }), all: [] };
      element.append(frames.place);
      frames.all = rows.length > MAX_COPIES ? [] : rows.map((token, row) => createCopy(frames.place, beside, token, row));
    }
    frames.all.forEach(({ button, drawing: small }, row) => {
      small.update({ ...options, amounts: scaleToLargest(readLine(source, "row", row)) });
      button.setAttribute("aria-pressed", String(row === chosen));
    });
  }

  function createCopy(place, beside, token, row) {
    const button = make("button", { type: "button", className: "regard-frame" });
    const small = createOverlay(button, beside);
    small.element.setAttribute("aria-hidden", "true"); // the button has the token's name
    button.append(make("bdi", { textContent: makeVisible(token) }));
    button.addEventListener("click", () => onchoose(row));
    place.append(button);
    return { button, drawing: small };
  }

  return { show };
}

// Against the largest: regions are many, and each gets little.
function scaleToLargest(weights) {
  const largest = weights.reduce((most, one) => Math.max(most, one), 0) || 1;
  return Array.from(weights, (one) => one / largest);
}
