// Curves that grow: numbers against steps, with a key to their lines, the last values above, and all values under the pointer.
//
//   const chart = createCurves(element, { name, language });
//   chart.show([{ name, color: 0 … 3, dashed, points: [[step, value], …] }, …]);

import { make, makeSvg } from "../controls.js";
import { roundStep } from "../labels.js";
import { createFormatter } from "../words.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [480, 220, 52, 26, 12, 12];
const MOST = 800; // points that are drawn of a line; more cannot be told apart

export function createCurves(element, { name, language }) {
  const say = createFormatter(language);
  const last = make("span");
  const picture = makeSvg("svg", { class: "curves", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  const key = make("p", { className: "key" });
  const tip = make("p", { className: "regard-tip", hidden: true });
  const figure = make("figure", { className: "curve" }, make("figcaption", {}, make("strong", { textContent: name }), last), picture, tip, key);
  element.append(figure);
  let shown; // { lines, x }
  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerdown", point);
  picture.addEventListener("pointerleave", () => {
    tip.hidden = true;
    picture.querySelector(".cursor")?.remove();
  });

  function show(lines) {
    const all = lines.flatMap(({ points }) => points);
    if (!all.length) return;
    const [x, y] = [createScale(all.map(([step]) => step), LEFT, WIDTH - RIGHT), createScale(listValues(all), HEIGHT - BOTTOM, TOP)];
    shown = { lines, x };
    last.textContent = lines.length === 1 ? formatNumber(lines[0].points.at(-1)[1]) : "";
    const values = lines.map((line) => `${line.name} ${formatNumber(line.points.at(-1)[1])}`);
    picture.setAttribute("aria-label", say("curve", { name, points: all.length, last: values.join(" · ") }));
    key.replaceChildren(...lines.map((line, place) => make("span", {}, drawSample(line), lines.length > 1 ? values[place] : line.name)));
    picture.replaceChildren(...drawAxis(x, y, say), ...lines.flatMap((line) => drawLine(line, x, y)));
  }

  /** The values at the step that is nearest to the pointer. */
  function point(event) {
    if (!shown) return;
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    const found = shown.lines.map((line) => ({ line, nearest: findNearest(line.points, (step) => Math.abs(shown.x.at(step) - at)) }));
    const [step] = found.reduce((best, { nearest }) => (Math.abs(shown.x.at(nearest[0]) - at) < Math.abs(shown.x.at(best[0]) - at) ? nearest : best), found[0].nearest);
    tip.replaceChildren(make("strong", { textContent: `${say("step")} ${step}` }),
      ...found.map(({ line, nearest }) => make("span", { className: "value" }, drawSample(line), `${line.name} ${formatNumber(nearest[1])}`)));
    tip.hidden = false;
    tip.style.left = `${Math.min(box.width - 160, Math.max(0, event.clientX - box.left + 12))}px`;
    picture.querySelector(".cursor")?.remove();
    picture.append(makeSvg("line", { class: "cursor", x1: shown.x.at(step), x2: shown.x.at(step), y1: TOP, y2: HEIGHT - BOTTOM }));
  }

  return { show, remove: () => figure.remove() };
}

function findNearest(points, distance) {
  return points.reduce((best, one) => (distance(one[0]) < distance(best[0]) ? one : best), points[0]);
}

function listClasses({ color, dashed }) {
  return `line line-${color % 4}${dashed ? " dashed" : ""}`;
}

function drawSample(line) {
  const sample = makeSvg("svg", { class: "sample", width: 22, height: 8, "aria-hidden": "true" });
  sample.append(makeSvg("line", { class: listClasses(line), x1: 0, x2: 22, y1: 4, y2: 4 }));
  return sample;
}

function drawLine(line, x, y) {
  const way = thinPoints(line.points).map(([step, value]) => `${x.at(step).toFixed(1)},${y.at(value).toFixed(1)}`);
  const [step, value] = line.points.at(-1);
  return [makeSvg("polyline", { class: listClasses(line), points: way.join(" ") }),
    makeSvg("circle", { class: `line-${line.color % 4}`, cx: x.at(step), cy: y.at(value), r: 3 })];
}

// The highest and lowest of a run that began badly would flatten all the rest: the first tenth is not counted above.
function listValues(points) {
  const later = points.slice(Math.floor(points.length / 10));
  return (later.length > 5 ? later : points).map(([, value]) => value);
}

function createScale(numbers, from, to) {
  const [low, high] = numbers.reduce(([least, most], one) => [Math.min(least, one), Math.max(most, one)], [Infinity, -Infinity]);
  const size = high - low || Math.abs(high) || 1;
  const step = roundStep(size / 5);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) ticks.push(tick);
  const held = (value) => Math.min(high + size * 0.04, Math.max(low - size * 0.04, value));
  return { ticks, at: (value) => from + ((held(value) - low) / size) * (to - from) * 0.96 + (to - from) * 0.02 };
}

function* drawAxis(x, y, say) {
  for (const tick of y.ticks) {
    yield makeSvg("line", { class: "tick", x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(tick), y2: y.at(tick) });
    yield makeSvg("text", { x: LEFT - 6, y: y.at(tick) + 4, "text-anchor": "end" }, formatNumber(tick));
  }
  for (const tick of x.ticks) yield makeSvg("text", { x: x.at(tick), y: HEIGHT - 8, "text-anchor": "middle" }, formatNumber(tick));
  yield makeSvg("text", { x: LEFT - 6, y: HEIGHT - 8, "text-anchor": "end", class: "pale" }, say("step"));
}

function thinPoints(points) {
  if (points.length <= MOST) return points;
  const every = points.length / MOST;
  return Array.from({ length: MOST }, (_, place) => points[Math.floor(place * every)]).concat([points.at(-1)]);
}

function formatNumber(value) {
  return Math.abs(value) >= 1e4 ? `${Number((value / 1000).toPrecision(3))}k` : String(Number(value.toPrecision(4)));
}
