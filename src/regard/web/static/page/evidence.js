// What an answer rests on, in full: the passage with the answer marked, or the facts of a story with the weight of each hop.

import { buildPalette, chooseTextColor, isDark, toCss } from "../colors.js";
import { make } from "../controls.js";
import { createFormatter } from "../words.js";

/** { element, show({ passage, begin, length }) }: nothing hides it. */
export function createPassageView(language) {
  const element = make("blockquote", { className: "passage", hidden: true, dir: "auto", ariaLabel: createFormatter(language)("passage") });
  return {
    element,
    show(found) {
      element.hidden = !found;
      if (!found) return;
      const { passage, begin, length } = found;
      const signs = [...passage]; // the server counts whole signs
      const end = begin + length;
      element.replaceChildren(signs.slice(0, begin).join(""), make("mark", { textContent: signs.slice(begin, end).join("") }), signs.slice(end).join(""));
    },
  };
}

/** { element, show(site, facts) }: a row for each fact, uncut, and a column for each hop. */
export function createFactsView(language) {
  const say = createFormatter(language);
  const table = make("table", { className: "facts" });
  const element = make("div", { hidden: true }, table);

  async function show(site, facts) {
    element.hidden = !site;
    if (!site) return;
    const [source, labels] = await Promise.all([site.source(0), site.labels()]);
    const colors = buildPalette("weights", isDark());
    const head = make("tr", {}, make("th", { textContent: say("facts"), scope: "col" }), ...labels.rows.map((name) => make("th", { textContent: name, scope: "col" })));
    const rows = facts.map((fact, place) => make("tr", {}, make("th", { textContent: fact, scope: "row", dir: "auto" }),
      ...labels.rows.map((_, hop) => shadeCell(source.weight(hop, place), colors))));
    table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  }

  return { element, show };
}

function shadeCell(weight, colors) {
  const cell = make("td", { textContent: weight.toFixed(2) });
  cell.style.background = toCss(colors, weight);
  cell.style.color = chooseTextColor(colors, weight);
  return cell;
}
