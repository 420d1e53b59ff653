// A curve that grows: numbers against steps, with the last one written above.
//
//   const chart = createCurves(element, { name, language });
//   chart.show([{ name, points: [[step, value], …] }, …]);

import { make, makeSvg } from "../controls.js";
import { roundStep } from "../labels.js";
import { createFormatter } from "../words.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [480, 220, 52, 26, 12, 12];
const MOST = 800; // points that are drawn of a line; more cannot be told apart

export function createCurves(element, { name, language }) {
  const caption = make("figcaption");
  const picture = makeSvg("svg", { class: "curves", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  element.append(make("figure", { className: "curve" }, caption, picture));

  return {
    show(lines) {
      const say = createFormatter(language);
      const all = lines.flatMap(({ points }) => points);
      if (!all.length) return;
      const [x, y] = [createScale(all.map(([step]) => step), LEFT, WIDTH - RIGHT), createScale(listValues(all), HEIGHT - BOTTOM, TOP)];
      const last = lines.map((line) => `${line.name === name ? "" : line.name} ${formatNumber(line.points.at(-1)[1])}`.trim()).join(" · ");
      caption.replaceChildren(make("strong", { textContent: name }), make("span", { textContent: last }));
      picture.setAttribute("aria-label", say("curve", { name, points: all.length, last }));
      const parts = [...drawAxis(x, y, say)];
      lines.forEach(({ points }, place) => {
        const way = thinPoints(points).map(([step, value]) => `${x.at(step).toFixed(1)},${y.at(value).toFixed(1)}`);
        parts.push(makeSvg("polyline", { class: `line line-${place % 4}`, points: way.join(" ") }));
        const [step, value] = points.at(-1);
        parts.push(makeSvg("circle", { class: `line-${place % 4}`, cx: x.at(step), cy: y.at(value), r: 3 }));
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

function* drawAxis(x, y, say) {
  for (const tick of y.ticks) {
    yield makeSvg("line", { class: "tick", x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(tick), y2: y.at(tick) });
    yield makeSvg("text", { x: LEFT - 6, y: y.at(tick) + 4, "text-anchor": "end" }, formatNumber(tick));
  }
  for (const tick of x.ticks) yield makeSvg("text", { x: x.at(tick), y: HEIGHT - 8, "text-anchor": "middle" }, formatNumber(tick));
  yield makeSvg("text", { x: WIDTH - RIGHT, y: HEIGHT - BOTTOM - 6, "text-anchor": "end", class: "pale" }, say("step"));
}

function thinPoints(points) {
  if (points.length <= MOST) return points;
  const every = points.length / MOST;
  return Array.from({ length: MOST }, (_, place) => points[Math.floor(place * every)]).concat([points.at(-1)]);
}

function formatNumber(value) {
  return Math.abs(value) >= 1e4 ? `${Number((value / 1000).toPrecision(3))}k` : String(Number(value.toPrecision(4)));
}
