// The curves of one run or several over each other, while they train, and how far they are.

import { make } from "../controls.js";
import { createFormatter } from "../words.js";
import { pause, streamEvents } from "./api.js";
import { createCurves } from "./curves.js";
import { computeProgress, createFollowed } from "./progress.js";

const MOST = 4; // runs at once: each takes one of the few connections that a browser has to one server

export function createTrainingView(element, { state, language, server, report }) {
  const say = createFormatter(language);
  const names = server.runs.map(({ name }) => name);
  const list = make("div", { className: "controls", role: "group", ariaLabel: say("run") });
  const status = make("div", { className: "progress", role: "status" });
  const figures = make("div", { className: "figures" });
  element.append(make("section", { className: "card" }, list, status, figures));
  const charts = new Map(); // by metric
  const followed = new Map(); // by run: see progress.js

  /** The runs that are shown: those of the address, or its one run, or the first. */
  function listChosen() {
    const asked = (state.get("runs") || state.get("run")).split("/").filter((name) => names.includes(name));
    return asked.length ? asked.slice(0, MOST) : names.slice(0, 1);
  }

  function renderList() {
    const chosen = listChosen();
    list.replaceChildren(...names.map((name) => {
      const box = make("input", { type: "checkbox", checked: chosen.includes(name), disabled: !chosen.includes(name) && chosen.length >= MOST });
      box.addEventListener("change", () => choose(box.checked ? [...listChosen(), name] : listChosen().filter((one) => one !== name)));
      return make("label", { className: "regard-control" }, box, make("span", { textContent: name }));
    }));
  }

  function choose(chosen) {
    state.set({ runs: chosen.join("/"), run: chosen[0] ?? "" });
    renderList();
    follow();
  }

  function follow() {
    const chosen = listChosen();
    for (const [name, { stop }] of followed) if (!chosen.includes(name)) { stop.abort(); followed.delete(name); }
    for (const name of chosen) if (!followed.has(name)) followed.set(name, createFollowed());
    for (const name of chosen) if (!followed.get(name).begun) followRun(name, followed.get(name));
    draw();
  }

  async function followRun(name, own) {
    own.begun = true;
    while (!own.stop.signal.aborted) {
      try {
        const path = `runs/${encodeURIComponent(name)}/metrics?start=${own.start}`;
        for await (const { name: kind, data } of streamEvents(path, undefined, { signal: own.stop.signal })) own.take(kind, data, draw);
      } catch (error) {
        if (error.name === "AbortError") return;
        if (error.status) return report(error);
      }
      await pause(1000); // the server is gone; it may come back
    }
  }

  /** Lines of each metric: a color for each run and dashes for held-out data; of a single run, a color for each. */
  function draw() {
    const chosen = listChosen().map((name) => [name, followed.get(name)]);
    const several = chosen.length > 1;
    status.replaceChildren(...chosen.map(([name, own]) => make("p", { className: "note" }, make("strong", { textContent: several ? `${name}: ` : "" }), computeProgress(own, say))));
    const metrics = new Set(chosen.flatMap(([, own]) => [...own.series.keys()]));
    for (const [metric, chart] of charts) if (!metrics.has(metric)) { chart.remove(); charts.delete(metric); }
    for (const metric of metrics) {
      if (!charts.has(metric)) charts.set(metric, createCurves(figures, { name: metric === "loss" || metric === "rate" ? say(metric) : metric, language }));
      const lines = chosen.flatMap(([name, own], place) => [...(own.series.get(metric) ?? [])].map(([kind, points], which) => ({
        name: several ? `${name} · ${say(kind)}` : say(kind), points, color: several ? place : which, dashed: kind === "validation",
      })));
      charts.get(metric).show(lines);
    }
  }

  if (!names.length) status.textContent = say("noRuns");
  else {
    renderList();
    follow();
  }
  const clock = setInterval(draw, 5000); // what is stalled is seen by nothing coming
  return {
    update() {},
    destroy() {
      clearInterval(clock);
      for (const { stop } of followed.values()) stop.abort();
    },
  };
}
