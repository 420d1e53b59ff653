// What the keys are parts of: a picture or a sound. Where a query looked stands out; a picture has a small copy for each.
//
//   const view = createMediaView(element, { onchoose(row), onregion(key) });
//   view.show(beside, { source, rows, picked, name, dark, language });   // `beside` as regard.inspect.draw.chapters writes it

import { make } from "./controls.js";
import { createOverlay } from "./overlay.js";
import { createSpectrogram, estimateHeight } from "./spectrogram.js";
import { formatExactly, makeVisible } from "./labels.js";
import { averageRows, readLine, unpackNumbers } from "./tables.js";
import { createFormatter } from "./words.js";

const MAX_COPIES = 60; // queries that have a small copy, at most

export function createMediaView(element, { onchoose, onregion }) {
  element.classList.add("regard-beside");
  let shown; // what the drawings are of
  let drawing;
  let last; // the options it was shown with
  let frames; // { rows, all: [{ button, drawing, weight }] }
  let opacity = 0.65;
  const heat = make("input", { type: "range", min: "0", max: "1", step: "0.05", value: String(opacity) });
  const heatName = make("span");
  const told = make("p", { className: "regard-readout", role: "status" });
  heat.addEventListener("input", () => {
    opacity = Number(heat.value);
    draw();
  });

  async function show(beside, options) {
    const { source } = options;
    element.hidden = !beside || source.tiled || source.columns !== beside.keys;
    if (element.hidden) return;
    last = options;
    if (beside.kind === "sound") element.style.minHeight = `${estimateHeight(Math.min(options.rows.length, MAX_COPIES), element.clientWidth)}px`; // it comes later
    else element.style.minHeight = "";
    if (shown !== beside) await build(beside);
    if (shown === beside && drawing) draw();
  }

  async function build(beside) {
    shown = beside;
    drawing = frames = undefined;
    const sound = beside.kind === "sound" && { ...beside, values: await unpackNumbers(beside.values) };
    if (shown !== beside) return; // another came while this was unpacked
    element.replaceChildren();
    if (sound) drawing = createSpectrogram(element, { ...sound, language: last.language, onchoose });
    else {
      createOverlay(element, { ...beside, language: last.language }).element.classList.add("regard-original");
      drawing = createOverlay(element, { ...beside, onhover: tell, onregion: (region) => onregion?.(region) });
      element.append(make("div", { className: "regard-heat" }, make("label", { className: "regard-control" }, heatName, heat), told));
    }
  }

  function draw() {
    const { source, rows, picked, ...options } = last;
    const place = (axis) => (picked?.axis === axis ? picked.place : undefined);
    const [row, column] = [place("row"), place("column")];
    const amounts = scaleToLargest(row === undefined ? averageRows(source) : readLine(source, "row", row));
    if (shown.kind === "image") {
      heatName.textContent = createFormatter(options.language)("heat");
      heat.setAttribute("aria-label", heatName.textContent);
      drawing.update({ ...options, amounts, opacity, outlined: column });
      showCopies(rows, row, column);
      tell(column);
    } else {
      const table = rows.length > MAX_COPIES ? [] : rows.map((_, one) => scaleToLargest(readLine(source, "row", one)));
      drawing.update({ ...options, amounts, table, rows, chosen: row });
    }
  }

  /** Which words looked at a region the most. */
  function tell(region) {
    if (region === undefined) return void told.replaceChildren();
    const { source, rows, language } = last;
    const best = rows.map((token, row) => [token, source.weight(row, region)]).sort((one, other) => other[1] - one[1]).slice(0, 3);
    const words = best.map(([token, weight]) => `${makeVisible(token)} ${weight.toFixed(2)}`).join(" · ");
    told.textContent = createFormatter(language)("regionWords", { region: nameRegion(region), words });
  }

  /** Row and column of a region, from 0, as its key is named. */
  function nameRegion(region) {
    const across = shown.grid[1];
    return `${Math.floor(region / across)},${region % across}`;
  }

  function showCopies(rows, chosen, region) {
    const { source, picked, ...options } = last;
    if (frames?.rows !== rows) {
      frames?.place.remove();
      frames = { rows, place: make("div", { className: "regard-frames" }), all: [] };
      element.append(frames.place);
      frames.all = rows.length > MAX_COPIES ? [] : rows.map((token, row) => createCopy(frames.place, token, row));
    }
    frames.all.forEach(({ button, drawing: small, weight }, row) => {
      small.update({ ...options, amounts: scaleToLargest(readLine(source, "row", row)), opacity, outlined: region });
      button.setAttribute("aria-pressed", String(row === chosen));
      weight.textContent = region === undefined ? "" : source.weight(row, region).toFixed(2);
      weight.title = region === undefined ? "" : formatExactly(source.weight(row, region));
    });
  }

  function createCopy(place, token, row) {
    const button = make("button", { type: "button", className: "regard-frame" });
    const small = createOverlay(button, shown);
    small.element.setAttribute("aria-hidden", "true"); // the button has the token's name
    const weight = make("small");
    button.append(make("bdi", { textContent: makeVisible(token) }), weight);
    button.addEventListener("click", () => onchoose(row));
    place.append(button);
    return { button, drawing: small, weight };
  }

  return { show };
}

// Against the largest: regions are many, and each gets little.
function scaleToLargest(weights) {
  const largest = weights.reduce((most, one) => Math.max(most, one), 0) || 1;
  return Array.from(weights, (one) => one / largest);
}
