// Attention over a picture: colored heat over the regions, as strong as is wanted; the picture itself stays as it is.
//
//   const seen = createOverlay(element, {
//     image: url, size: [width, height], grid: [rows, columns], amounts, name, dark, language,   // `amounts` are 0 … 1 for each region
//     opacity, outlined, onhover(region or undefined), onregion(region),  // the last four may be left out
//   });

import { make, setBusy } from "./controls.js";
import { createFormatter } from "./words.js";

const [COOL, HOT] = [[255, 221, 87], [214, 40, 40]]; // of weights that are small and large: ink stays darker than both

export function createOverlay(element, options) {
  const state = { opacity: 0.65, ...options };
  const canvas = make("canvas", { className: "regard-overlay", role: "img" });
  element.append(canvas);
  const picture = new Image();
  setBusy(canvas, true);
  for (const kind of ["load", "error"]) picture.addEventListener(kind, () => setBusy(canvas, false));
  picture.addEventListener("load", draw);
  if (state.size) fit(...state.size); // its room, before it is loaded
  picture.src = state.image;
  if (state.onregion) followPointer(canvas, state, draw);

  /** Gives the canvas the size of a picture, and says how many times larger it is. */
  function fit(width, height) {
    const larger = Math.max(1, Math.round(320 / width));
    canvas.style.imageRendering = larger > 1 ? "pixelated" : "auto"; // a drawing has edges, a photograph has none
    [canvas.width, canvas.height] = [width * larger, height * larger];
    return larger;
  }

  function draw() {
    if (!picture.naturalWidth) return;
    const larger = fit(picture.naturalWidth, picture.naturalHeight);
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = larger === 1;
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    if (state.amounts) drawRegions(context);
  }

  function drawRegions(context) {
    const [rows, columns] = state.grid;
    const [width, height] = [canvas.width / columns, canvas.height / rows];
    const place = (region) => [(region % columns) * width, Math.floor(region / columns) * height, width, height];
    for (let region = 0; region < rows * columns; region += 1) {
      const amount = Math.min(1, Math.max(0, state.amounts[region] || 0));
      const [red, green, blue] = COOL.map((from, part) => Math.round(from + (HOT[part] - from) * amount));
      context.fillStyle = `rgb(${red} ${green} ${blue} / ${state.opacity * amount})`;
      context.fillRect(...place(region));
    }
    for (const [region, color] of [[state.outlined, "#c2410c"], [state.hovered, "#2444a8"]]) if (region !== undefined) outline(context, place(region), color);
  }

  function update(changes = {}) {
    Object.assign(state, changes);
    canvas.setAttribute("aria-label", createFormatter(state.language)("overlay", { name: state.name ?? "" }));
    if (changes.image) {
      setBusy(canvas, true);
      picture.src = changes.image;
    } else draw();
  }

  update();
  return { update, element: canvas };
}

// White inside of a color: one of the two is seen on any picture.
function outline(context, [x, y, width, height], color) {
  const thick = Math.max(2, context.canvas.width / 160);
  for (const [inset, paint] of [[thick / 2, color], [1.5 * thick, "#fff"]]) {
    context.strokeStyle = paint;
    context.lineWidth = thick;
    context.strokeRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset);
  }
}

/** A pointer outlines the region it is over and chooses it; so do arrow keys and Enter. */
function followPointer(canvas, state, draw) {
  canvas.tabIndex = 0;
  const [rows, columns] = state.grid;
  const hover = (region) => {
    if (state.hovered === region) return;
    state.hovered = region;
    draw();
    state.onhover?.(region);
  };
  const find = (event) => {
    const box = canvas.getBoundingClientRect();
    const [row, column] = [Math.floor(((event.clientY - box.top) / box.height) * rows), Math.floor(((event.clientX - box.left) / box.width) * columns)];
    return row >= 0 && row < rows && column >= 0 && column < columns ? row * columns + column : undefined;
  };
  canvas.addEventListener("pointermove", (event) => hover(find(event)));
  canvas.addEventListener("pointerleave", () => hover(undefined));
  canvas.addEventListener("click", (event) => state.onregion(find(event)));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (step !== undefined) hover(Math.min(rows * columns - 1, Math.max(0, (state.hovered ?? -step) + step)));
    else if (event.key === "Enter" && state.hovered !== undefined) state.onregion(state.hovered);
    else return;
    event.preventDefault();
  });
}
