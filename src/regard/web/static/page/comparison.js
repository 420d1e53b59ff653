// Another run beside the first, made to say the same translation, and the difference of the two.

import { createLegend, make } from "../controls.js";
import { isDark } from "../colors.js";
import { createHeatMap } from "../heatmap.js";
import { setScale } from "../panelcontrols.js";
import { findFirstSite, MEAN } from "../sites.js";
import { createLocalSource } from "../source.js";
import { readWeights } from "../tables.js";
import { createFormatter, formatHeadName } from "../words.js";
import { postJson, streamEvents } from "./api.js";
import { createSites } from "./sources.js";

export function createComparison(element, { state, language, report }) {
  const say = createFormatter(language);
  const heading = make("h2", { className: "name" });
  const own = make("p", { className: "note", dir: "auto" });
  const problem = make("p", { className: "note" });
  const parts = ["first", "second", "differenceOf"].map((name) => {
    const place = make("div");
    return { name, place, title: make("h3"), legend: createLegend(), element: make("div", { className: "pane" }), map: undefined };
  });
  for (const part of parts) part.element.append(part.title, part.legend.element, part.place);
  const panes = make("div", { className: "triple" }, ...parts.map((part) => part.element));
  element.append(heading, own, problem, panes);
  let turn = 0;
  let sites;
  let names;

  async function start(panel, question, text, firstRun) {
    const mine = (turn += 1);
    const { run, text: source, masked, masking } = question;
    names = [firstRun, run];
    try {
      // The words of the first run's masked tokens may be others here; masks are sent as they are.
      const found = await postJson("attention", { run, text: source, masked, masking, target: text || " " });
      if (mine !== turn) return;
      sites = createSites(found);
      element.hidden = false;
      heading.textContent = `${firstRun} ↔ ${run}`;
      own.textContent = "";
      await showPanel(panel);
      const translation = await translate(question);
      if (mine === turn) own.textContent = `${run}: ${say("ownTranslation", { text: translation || "∅" })}`;
    } catch (error) {
      if (mine === turn) report(error);
    }
  }

  async function translate(question) {
    let text = "";
    for await (const { name, data } of streamEvents("translate", question)) {
      if (name === "done") text = data.hypotheses[0]?.text ?? "";
    }
    return text;
  }

  /** The first run shows another layer or head: so do these. */
  async function showPanel(panel) {
    if (!sites || !state.get("with") || panel.passing) return;
    const mine = turn;
    const same = sites.find(({ name }) => name === panel.site.name);
    const site = same ?? sites[findFirstSite(sites)];
    const head = site.heads === 1 ? 0 : Math.min(same ? panel.head : MEAN, site.heads - 1);
    const [labels, source] = await Promise.all([site.labels(), site.source(head)]);
    if (mine !== turn) return;
    const alike = String(labels.rows) === String(panel.labels.rows) && String(labels.columns) === String(panel.labels.columns);
    problem.textContent = alike ? "" : say("unlike");
    const largest = Math.max(panel.source.largest, source.largest); // one scale for both, or colors could not be compared
    draw(parts[0], { ...panel.source, largest }, panel.labels, { ...panel.options, name: `${names[0]}: ${panel.name}` });
    draw(parts[1], { ...source, largest }, labels, { ...panel.options, name: `${names[1]}: ${formatHeadName(site, head, say)}` });
    parts[2].element.hidden = !alike;
    if (!alike) return;
    const options = { ...panel.options, kind: "difference", scale: "global", threshold: 0, name: say("differenceOf") };
    draw(parts[2], subtractSources(panel.source, source), labels, options);
  }

  function draw(part, source, { rows, columns }, options) {
    part.title.textContent = options.name;
    const all = { ...options, source, rows, columns, language, dark: isDark() };
    setScale(part.legend, all, source.largest, say);
    if (part.map) part.map.update(all);
    else part.map = createHeatMap(part.place, all);
  }

  return {
    start,
    showPanel: (panel) => { showPanel(panel).catch(report); },
    hide() {
      turn += 1;
      sites = undefined;
      element.hidden = true;
    },
    update() {
      for (const { map } of parts) map?.update({ dark: isDark() });
    },
  };
}

function subtractSources(first, second) {
  const [before, after] = [readWeights(first), readWeights(second)];
  return createLocalSource(after.map((weight, place) => weight - before[place]), first.rows, first.columns);
}
