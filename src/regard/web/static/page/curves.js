// A curve that grows: numbers against steps, with the last one told.
//
//   const chart = createCurves(element, { name, language });
//   chart.show([{ name, points: [[step, value], …] }, …]);

import { make } from "../controls.js";
import { createFormatter } from "../words.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [480, 220, 52, 26, 12, 12];
const MOST = 800; // points that are drawn of a line; more cannot be told apart

export function createCurves(element, { name, language }) {
  const caption = make("figcaption");
  const picture = createSvg("svg", { class: "curves", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  element.append(make("figure", { className: "curve" }, caption, picture));

  return {
    show(lines) {
      const say = createFormatter(language);
      const all = lines.flatMap(({ points }) => points);
      if (!all.length) return;
      const [x, y] = [createScale(all.map(([step]) => step), LEFT, WIDTH - RIGHT), createScale(listValues(all), HEIGHT - BOTTOM, TOP)];
      const told = lines.map((line) => `${line.name === name ? "" : line.name} ${formatNumber(line.points.at(-1)[1])}`.trim()).join(" · ");
      caption.replaceChildren(make("strong", { textContent: name }), make("span", { textContent: told }));
      picture.setAttribute("aria-label", say("curve", { name, points: all.length, last: told }));
      const parts = [...axis(x, y, say)];
      lines.forEach(({ points }, place) => {
        const way = thinPoints(points).map(([step, value]) => `${x.at(step).toFixed(1)},${y.at(value).toFixed(1)}`);
        parts.push(createSvg("polyline", { class: `line line-${place % 4}`, points: way.join(" ") }));
        const [step, value] = points.at(-1);
        parts.push(createSvg("circle", { class: `line-${place % 4}`, cx: x.at(step), cy: y.at(value), r: 3 }));
      });
      picture.replaceChildren(...parts);
    },
  };
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

function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least);
}

function* drawAxis(x, y, say) {
  for (const tick of y.ticks) {
    yield createSvg("line", { class: "tick", x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(tick), y2: y.at(tick) });
    yield createText(formatNumber(tick), { x: LEFT - 6, y: y.at(tick) + 4, "text-anchor": "end" });
  }
  for (const tick of x.ticks) yield createText(formatNumber(tick), { x: x.at(tick), y: HEIGHT - 8, "text-anchor": "middle" });
  yield createText(say("step"), { x: WIDTH - RIGHT, y: HEIGHT - BOTTOM - 6, "text-anchor": "end", class: "pale" });
}

function thinPoints(points) {
  if (points.length <= MOST) return points;
  const every = points.length / MOST;
  return Array.from({ length: MOST }, (_, place) => points[Math.floor(place * every)]).concat([points.at(-1)]);
}

function formatNumber(value) {
  return Math.abs(value) >= 1e4 ? `${Number((value / 1000).toPrecision(3))}k` : String(Number(value.toPrecision(4)));
}

function createSvg(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

function createText(text, attributes) {
  const made = createSvg("text", attributes);
  made.textContent = text;
  return made;
}
