// Attention over a picture or over a sound: what was looked at stands out.
//
//   const seen = createOverlay(element, { image: url, grid: [rows, columns], amounts, name, dark, language });
//   const heard = createSpectrogram(element, { values, bins, frames, seconds, amounts, name, dark, language });
//
// `amounts` are 0 … 1 for each region, or each stretch of time; stretches are equally long.

import { buildPalette, isDark, toCss } from "./colors.js";
import { make } from "./controls.js";
import { createFormatter } from "./words.js";

const HIDDEN = 0.78; // how much of a region that got nothing is covered
const BAND = 46; // pixels of the curve under a spectrogram

export function createOverlay(element, options) {
  const state = { ...options };
  const canvas = addCanvas(element, "regard-overlay");
  const picture = new Image();
  picture.addEventListener("load", draw);
  picture.src = state.image;

  function draw() {
    if (!picture.naturalWidth) return;
    const larger = Math.max(1, Math.round(320 / picture.naturalWidth));
    canvas.style.imageRendering = larger > 1 ? "pixelated" : "auto"; // a drawing has edges, a photograph has none
    canvas.width = picture.naturalWidth * larger;
    canvas.height = picture.naturalHeight * larger;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = larger === 1;
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    if (state.amounts) drawRegions(context);
  }

  function drawRegions(context) {
    const [rows, columns] = state.grid;
    const [width, height] = [canvas.width / columns, canvas.height / rows];
    for (let region = 0; region < rows * columns; region += 1) {
      context.fillStyle = `rgb(12 12 16 / ${HIDDEN * (1 - clamp(state.amounts[region]))})`;
      context.fillRect((region % columns) * width, Math.floor(region / columns) * height, width, height);
    }
  }

  function update(changes = {}) {
    Object.assign(state, changes);
    canvas.setAttribute("aria-label", createFormatter(state.language)("overlay", { name: state.name ?? "" }));
    if (changes.image) picture.src = changes.image;
    else draw();
  }

  update();
  return { update, element: canvas };
}

export function createSpectrogram(element, options) {
  const state = { ...options };
  const canvas = addCanvas(element, "regard-spectrogram");

  function update(changes = {}) {
    Object.assign(state, changes);
    const say = createFormatter(state.language);
    canvas.setAttribute("aria-label", say("spectrogram", { name: state.name ?? "" }));
    const dark = state.dark ?? isDark();
    canvas.width = Math.max(960, Math.min(1600, state.frames));
    canvas.height = 120 + BAND + 22;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(drawSound(state, dark), 0, 0, canvas.width, 120);
    if (state.amounts) drawWeights(context, dark);
    drawAxis(context, say, dark);
  }

  function drawWeights(context, dark) {
    const colors = buildPalette("weights", dark);
    const width = canvas.width / state.amounts.length;
    state.amounts.forEach((amount, stretch) => {
      context.fillStyle = `rgb(12 12 16 / ${0.6 * (1 - clamp(amount))})`;
      context.fillRect(stretch * width, 0, width, 120);
      context.fillStyle = toCss(colors, 0.25 + 0.75 * clamp(amount));
      context.fillRect(stretch * width, 124 + BAND * (1 - clamp(amount)), Math.max(1, width - 0.3), BAND * clamp(amount));
    });
  }

  function drawAxis(context, say, dark) {
    context.fillStyle = dark ? "#a0a4a8" : "#5f6368";
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "bottom";
    const end = state.seconds ?? state.frames;
    for (let tick = 0; tick <= 4; tick += 1) {
      context.textAlign = tick === 0 ? "left" : tick === 4 ? "right" : "center";
      const value = (end * tick) / 4;
      const unit = tick === 4 ? ` ${say(state.seconds ? "time" : "frames")}` : "";
      const text = `${state.seconds ? value.toFixed(2) : Math.round(value)}${unit}`;
      context.fillText(text, (canvas.width * tick) / 4, canvas.height - 2);
    }
  }

  update();
  return { update, element: canvas };
}

// Low frequencies at the bottom, as everywhere.
function drawSound({ values, bins, frames }, dark) {
  const picture = make("canvas", { width: frames, height: bins });
  const context = picture.getContext("2d");
  const bytes = context.createImageData(frames, bins);
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) [least, most] = [Math.min(least, value), Math.max(most, value)];
  for (let bin = 0; bin < bins; bin += 1) {
    for (let frame = 0; frame < frames; frame += 1) {
      const share = (values[bin * frames + frame] - least) / (most - least || 1);
      const grey = 255 * (dark ? share : 1 - share);
      bytes.data.set([grey, grey, grey, 255], ((bins - 1 - bin) * frames + frame) * 4);
    }
  }
  context.putImageData(bytes, 0, 0);
  return picture;
}

function addCanvas(element, name) {
  const canvas = make("canvas", { className: name, role: "img" });
  element.append(canvas);
  return canvas;
}

function clamp(amount) {
  return Math.min(1, Math.max(0, amount || 0));
}
