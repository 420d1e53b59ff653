// The controls of a panel: layer, head, colors with their scale, drawing, zoom; and the buttons that save what is shown.

import { createButton, createChoice, createLegend, createSlider, createSwitch, createToggle, make } from "./controls.js";
import { countCells, FORMATS, MOST, saveFile } from "./export.js";
import { formatExactly } from "./labels.js";
import { findStack } from "./rollout.js";
import { ALIGNMENT, MEAN, ROLLOUT } from "./sites.js";
import { createPaint } from "./tiles.js";
import { formatSiteName } from "./words.js";

const NAMES = { site: "layer", head: "headName", drawing: "drawing", scale: "colors", threshold: "threshold", words: "wholeWords" };

/** Says what the colors of a map mean: `largest` is the number of the last one, or its name. */
export function setScale(legend, options, largest, say) {
  const named = typeof largest === "number" ? formatExactly(Number(largest.toPrecision(3))) : largest;
  const most = { none: "1", row: say("rowLargest"), global: named }[options.scale];
  const difference = options.kind === "difference";
  legend.set(createPaint(options), difference ? `−${most}` : "0", most, difference ? "0" : "");
}

export function createPanelControls(panel) {
  const set = (name) => (value) => panel.change({ [name]: value });
  const controls = {
    site: createChoice((value) => panel.change({ site: Number(value) })),
    head: createChoice((value) => panel.change({ head: Number(value) })),
    drawing: createToggle(set("drawing")),
    scale: createChoice((value) => panel.change({ scale: value === "auto" ? "" : value })),
    threshold: createSlider(set("threshold")),
    words: createSwitch((checked) => panel.change({ words: checked ? "yes" : "" })),
  };
  const legend = createLegend();
  const zooming = make("div", { className: "part-zooming", role: "group" });
  const saving = make("div", { className: "part-saving" });
  const { site, head, drawing, scale, threshold, words } = controls;
  const parts = [site, head, drawing, scale, legend, threshold, words].map((control) => control.element);
  const element = make("div", { className: "controls" }, ...parts);
  let spoken; // the language that the buttons are in

  function show() {
    const { say, state, site: shown, small } = panel;
    for (const [name, word] of Object.entries(NAMES)) controls[name].label(say(word));
    if (spoken !== panel.language) fillButtons();
    showSites();
    showHeads(shown.heads);
    const drawings = ["map", ...(small ? ["lines"] : []), ...(panel.heads.several || panel.passing ? ["heads"] : [])];
    drawing.set(drawings.map((name) => [name, say(name === "heads" ? "allHeads" : name)]), panel.drawing);
    drawing.element.hidden = drawings.length < 2;
    scale.set(["auto", "none", "row", "global"].map((name) => [name, say(name)]), state.get("scale") || "auto");
    threshold.set(state.get("threshold"));
    words.element.hidden = !panel.hasPieces;
    words.set(panel.asWords);
    showLegend();
    zooming.hidden = panel.drawing !== "map";
    saving.hidden = panel.drawing === "heads";
  }

  function showSites() {
    const { say, sites, place } = panel;
    site.set(sites.map(({ name }, number) => [number, formatSiteName(name, say)]), place);
    site.element.hidden = sites.length < 2 && !panel.passing; // while a search goes on, its place is kept
  }

  function showHeads(count) {
    const numbers = Array.from({ length: count }, (_, place) => [place, String(place)]);
    const mean = count > 1 ? [[MEAN, panel.say("mean")]] : [];
    const alignment = panel.site.whole && panel.site.kind !== "difference" ? [[ALIGNMENT, panel.say("alignment")]] : [];
    const rollout = findStack(panel.sites, panel.place).length ? [[ROLLOUT, panel.say("rollout")]] : [];
    const all = [...mean, ...numbers, ...alignment, ...rollout];
    head.set(all, panel.head);
    head.element.hidden = all.length < 2 && !panel.passing;
  }

  function showLegend() {
    const { options, say, source } = panel;
    const each = panel.drawing === "heads" && options.scale !== "row";
    setScale(legend, options, each ? say("headLargest") : source.largest, say);
  }

  function fillButtons() {
    const { say, drawings } = panel;
    spoken = panel.language;
    const zooms = [["−", "zoomOut", () => drawings.map?.zoom(1 / 1.5)], ["+", "zoomIn", () => drawings.map?.zoom(1.5)]];
    const buttons = zooms.map(([sign, word, act]) => createButton(sign, act, { ariaLabel: say(word), title: say(word) }));
    zooming.replaceChildren(...buttons, createButton(say("fit"), () => drawings.map?.fit(), { className: "regard-fit" }));
    zooming.setAttribute("aria-label", say("zoom"));
    const saves = Object.keys(FORMATS).map((format) => createButton(format, () => save(format), { ariaLabel: `${say("save")} ${format}` }));
    saving.replaceChildren(make("span", { textContent: say("save") }), ...saves);
  }

  async function save(format) {
    const { source, say, labels: { rows, columns }, name, options, drawings: { map } } = panel;
    const cells = countCells(source);
    if (!format.startsWith("PNG") && (source.tiled || cells > MOST)) {
      panel.report(new Error(say("tooLarge", { cells: cells.toLocaleString(), most: MOST.toLocaleString() })));
      return;
    }
    await saveFile(format, { ...options, map, source, rows, columns, name });
  }

  return { element, saving, zooming, show };
}
