// The curves of a run, while it trains.

import { choice, make } from "../controls.js";
import { speaker } from "../words.js";
import { events, pause } from "./api.js";
import { curves } from "./curves.js";

const QUIET = 60_000; // milliseconds without news after which a run is not called live

export function trainingView(element, { state, language, server, report }) {
  const say = speaker(language);
  const names = server.runs.map(({ name }) => name);
  const run = choice((value) => { state.set({ run: value }); follow(); });
  run.label(say("run"));
  const status = make("p", { className: "note" });
  status.setAttribute("role", "status");
  const figures = make("div", { className: "figures" });
  element.append(make("section", { className: "card" }, make("div", { className: "controls" }, run.element), status, figures));
  let following;
  let series;

  const chosen = () => (names.includes(state.get("run")) ? state.get("run") : names[0]);

  async function follow() {
    following?.abort();
    const mine = (following = new AbortController());
    series = new Map();
    figures.replaceChildren();
    status.textContent = say("noMetrics");
    let start = 0;
    while (!mine.signal.aborted) {
      try {
        const path = `runs/${encodeURIComponent(chosen())}/metrics?start=${start}`;
        for await (const { name, data } of events(path, undefined, { signal: mine.signal })) {
          if (name === "again") { series.clear(); figures.replaceChildren(); start = 0; }
          if (name === "points") { start = data.end; take(data.points); }
          if (series.size) status.textContent = performance.now() - (series.news ?? -QUIET) < QUIET ? `● ${say("live")}` : say("ended");
        }
      } catch (error) {
        if (error.name === "AbortError") return;
        if (error.status) return report(error);
      }
      await pause(1000); // the server is gone; it may come back
    }
  }

  function take(points) {
    if (series.size) series.news = performance.now();
    for (const { step, loss, rate, metrics } of points) {
      if (loss !== undefined) add("loss", say("training"), step, loss);
      if (rate !== undefined) add("rate", say("rate"), step, rate);
      for (const [name, value] of Object.entries(metrics ?? {})) add(name, say("validation"), step, value);
    }
    for (const [name, { chart, lines }] of series) {
      void name;
      chart.show([...lines].map(([line, all]) => ({ name: line, points: all })));
    }
  }

  function add(name, line, step, value) {
    if (!series.has(name)) {
      const title = name === "loss" || name === "rate" ? say(name) : name;
      series.set(name, { chart: curves(figures, { name: title, language }), lines: new Map() });
    }
    const { lines } = series.get(name);
    if (!lines.has(line)) lines.set(line, []);
    lines.get(line).push([step, value]);
  }

  if (!names.length) status.textContent = say("noRuns");
  else {
    run.set(names.map((name) => [name, name]), chosen());
    follow();
  }
  return { update() {}, destroy: () => following?.abort() };
}
