// The curves of a run, while it trains.

import { createChoice, make } from "../controls.js";
import { createFormatter } from "../words.js";
import { pause, streamEvents } from "./api.js";
import { createCurves } from "./curves.js";

const QUIET = 60_000; // milliseconds without news after which a run is not called live

export function createTrainingView(element, { state, language, server, report }) {
  const say = createFormatter(language);
  const names = server.runs.map(({ name }) => name);
  const run = createChoice((value) => { state.set({ run: value }); follow(); });
  run.label(say("run"));
  const status = make("p", { className: "note", role: "status" });
  const figures = make("div", { className: "figures" });
  element.append(make("section", { className: "card" }, make("div", { className: "controls" }, run.element), status, figures));
  let following;
  let series;

  const chooseRun = () => (names.includes(state.get("run")) ? state.get("run") : names[0]);

  async function follow() {
    following?.abort();
    const mine = (following = new AbortController());
    series = new Map();
    figures.replaceChildren();
    status.textContent = say("noMetrics");
    let start = 0;
    while (!mine.signal.aborted) {
      try {
        const path = `runs/${encodeURIComponent(chooseRun())}/metrics?start=${start}`;
        for await (const { name, data } of streamEvents(path, undefined, { signal: mine.signal })) {
          if (name === "again") { series.clear(); figures.replaceChildren(); start = 0; }
          if (name === "points") { start = data.end; addPoints(data.points); }
          if (series.size) status.textContent = performance.now() - (series.news ?? -QUIET) < QUIET ? `● ${say("live")}` : say("ended");
        }
      } catch (error) {
        if (error.name === "AbortError") return;
        if (error.status) return report(error);
      }
      await pause(1000); // the server is gone; it may come back
    }
  }

  function addPoints(points) {
    if (series.size) series.news = performance.now();
    for (const { step, loss, rate, metrics } of points) {
      if (loss !== undefined) addPoint("loss", say("training"), step, loss);
      if (rate !== undefined) addPoint("rate", say("rate"), step, rate);
      for (const [name, value] of Object.entries(metrics ?? {})) addPoint(name, say("validation"), step, value);
    }
    for (const { chart, lines } of series.values()) {
      chart.show([...lines].map(([line, all]) => ({ name: line, points: all })));
    }
  }

  function addPoint(name, line, step, value) {
    if (!series.has(name)) {
      const title = name === "loss" || name === "rate" ? say(name) : name;
      series.set(name, { chart: createCurves(figures, { name: title, language }), lines: new Map() });
    }
    const { lines } = series.get(name);
    if (!lines.has(line)) lines.set(line, []);
    lines.get(line).push([step, value]);
  }

  if (!names.length) status.textContent = say("noRuns");
  else {
    run.set(names.map((name) => [name, name]), chooseRun());
    follow();
  }
  return { update() {}, destroy: () => following?.abort() };
}
