// Attention over a sound: spectrogram, weights and the map of all symbols on one axis of time, with a player whose cursor runs over them.
//
//   const heard = createSpectrogram(element, { values, bins, frames, seconds, audio, onchoose(row), … });
//   heard.update({ amounts, table, rows, chosen, name, dark, language });
//
// `amounts` are 0 … 1 for each stretch of time, `table` has such a row for each symbol; stretches are equally long.

import { buildPalette, isDark, toCss } from "./colors.js";
import { createPlayer } from "./player.js";
import { make } from "./controls.js";
import { makeVisible, shorten } from "./labels.js";
import { createFormatter } from "./words.js";

const [WIDEST, LEFT, PICTURE, BAND, LINE, AXIS] = [1200, 84, 120, 46, 20, 22]; // pixels of the canvas
const NARROWEST = 240; // a canvas has as many pixels as its place, so that letters can be read on a phone, within these bounds
const MAP = PICTURE + BAND + 10; // where the map begins

/** The height of the drawing and its player for so many symbols, in pixels of a page that is so wide. */
export function estimateHeight(rows, width) {
  return ((MAP + LINE * rows + AXIS) * width) / chooseWidth(width) + 52;
}

function chooseWidth(width) {
  return width ? Math.min(WIDEST, Math.max(NARROWEST, Math.round(width))) : WIDEST;
}

export function createSpectrogram(element, options) {
  const state = { table: [], rows: [], ...options };
  const canvas = make("canvas", { className: "regard-spectrogram", role: "img" });
  const cursor = make("div", { className: "regard-cursor", hidden: true });
  const box = make("div", { className: "regard-sound" }, canvas, cursor);
  element.append(box);
  let width = chooseWidth(box.clientWidth);
  new ResizeObserver(() => { if (chooseWidth(box.clientWidth) !== width) update(); }).observe(box);
  const player = state.audio && createPlayer(element, state.audio, { label: () => createFormatter(state.language)("player"), onmove: moveCursor });
  canvas.addEventListener("click", (event) => {
    const place = canvas.getBoundingClientRect();
    const [x, y] = [((event.clientX - place.left) / place.width) * width, ((event.clientY - place.top) / place.height) * canvas.height];
    const row = Math.floor((y - MAP) / LINE);
    if (row >= 0 && row < state.table.length) state.onchoose?.(row);
    else if (x >= LEFT) player?.seek((x - LEFT) / (width - LEFT));
  });

  function moveCursor(share) {
    cursor.hidden = false;
    cursor.style.left = `${(100 * (LEFT + share * (width - LEFT))) / width}%`;
  }

  function update(changes = {}) {
    Object.assign(state, changes);
    const say = createFormatter(state.language);
    canvas.setAttribute("aria-label", say("spectrogram", { name: state.name ?? "" }));
    player?.label(say("player"));
    const dark = state.dark ?? isDark();
    canvas.width = width = chooseWidth(box.clientWidth);
    canvas.height = MAP + LINE * state.table.length + AXIS;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(drawSound(state, dark), LEFT, 0, width - LEFT, PICTURE);
    if (state.amounts) drawWeights(context, dark);
    drawMap(context, dark);
    drawAxis(context, say, dark);
  }

  function drawWeights(context, dark) {
    const colors = buildPalette("weights", dark);
    const each = (width - LEFT) / state.amounts.length;
    state.amounts.forEach((amount, stretch) => {
      context.fillStyle = toCss(colors, 0.25 + 0.75 * clamp(amount));
      context.fillRect(LEFT + stretch * each, PICTURE + 4 + BAND * (1 - clamp(amount)), Math.max(1, each - 0.3), BAND * clamp(amount));
    });
  }

  function drawMap(context, dark) {
    const colors = buildPalette("weights", dark);
    context.font = "14px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    state.table.forEach((amounts, row) => {
      const [top, each] = [MAP + row * LINE, (width - LEFT) / amounts.length];
      amounts.forEach((amount, stretch) => {
        context.fillStyle = toCss(colors, clamp(amount));
        context.fillRect(LEFT + stretch * each, top, each + 0.5, LINE - 1);
      });
      context.fillStyle = row === state.chosen ? (dark ? "#ffb454" : "#c2410c") : dark ? "#e6e6e6" : "#1c1c1c";
      context.fillText(shorten(makeVisible(state.rows[row] ?? ""), 9), LEFT - 8, top + LINE / 2);
    });
  }

  function drawAxis(context, say, dark) {
    context.fillStyle = dark ? "#a0a4a8" : "#5f6368";
    context.font = "14px system-ui, sans-serif";
    context.textBaseline = "bottom";
    const end = state.seconds ?? state.frames;
    const ticks = width < 480 ? 2 : 4;
    for (let tick = 0; tick <= ticks; tick += 1) {
      context.textAlign = tick === 0 ? "left" : tick === ticks ? "right" : "center";
      const value = (end * tick) / ticks;
      const unit = tick === ticks ? ` ${say(state.seconds ? "time" : "frames")}` : "";
      const text = `${state.seconds ? value.toFixed(2) : Math.round(value)}${unit}`;
      context.fillText(text, LEFT + ((width - LEFT) * tick) / ticks, canvas.height - 2);
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

function clamp(amount) {
  return Math.min(1, Math.max(0, amount || 0));
}
