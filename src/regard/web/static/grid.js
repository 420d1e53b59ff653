// Small pictures of every head, layer by layer; one of them is chosen.
//
//   const grid = createHeadGrid(element, {
//     sites: [{ name, heads: [source, …] }],   // a row each; sources as in source.js, of weights that are here
//     chosen: { site: 0, head: 1 },            // head −1 is the mean
//     mean: [source, …],                       // of each site, where its heads have one
//     scale, threshold, dark, language, onchoose({ site, head }),
//   });

import { isDark } from "./colors.js";
import { make } from "./controls.js";
import { createPaint, drawThumbnail } from "./tiles.js";
import { createFormatter } from "./words.js";

const PIXELS = 72;

export function createHeadGrid(element, options) {
  const state = { ...options };
  const table = make("div", { className: "regard-grid", role: "grid" });
  element.append(table);
  let buttons = new Map();
  let shown; // the sites that the buttons are of

  table.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const [down, right] = moves[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const site = Math.min(state.sites.length - 1, Math.max(0, state.chosen.site + down));
    const heads = state.sites[site].heads.length;
    choose({ site, head: Math.min(heads - 1, Math.max(heads > 1 ? -1 : 0, state.chosen.head + right)) });
    buttons.get(`${state.chosen.site}/${state.chosen.head}`).focus();
  });

  function choose(chosen) {
    update({ chosen });
    state.onchoose?.(chosen);
  }

  function update(changes = {}) {
    Object.assign(state, changes);
    const say = createFormatter(state.language);
    const language = say("mean");
    if (shown?.sites !== state.sites || shown.language !== language) build(say);
    shown = { sites: state.sites, language };
    const paint = createPaint({ ...state, dark: state.dark ?? isDark() });
    for (const [name, button] of buttons) {
      const chosen = name === `${state.chosen.site}/${state.chosen.head}`;
      button.tabIndex = chosen ? 0 : -1;
      button.setAttribute("aria-pressed", String(chosen));
      if (button.paint === paint.name) continue;
      drawThumbnail(button.firstChild, button.source, paint, PIXELS);
      button.paint = paint.name;
    }
  }

  function build(say) {
    buttons = new Map();
    table.replaceChildren(...state.sites.map((site, place) => createSiteRow(site, place, say)));
    table.setAttribute("aria-label", say("heads"));
  }

  function createSiteRow(site, place, say) {
    const name = make("span", { className: "regard-grid-name", textContent: site.name, role: "rowheader" });
    const heads = site.heads.map((source, head) => createThumbnail(source, place, head, say));
    if (site.heads.length > 1 && state.mean) heads.unshift(createThumbnail(state.mean[place], place, -1, say));
    return make("div", { className: "regard-grid-row", role: "row" }, name, ...heads);
  }

  function createThumbnail(source, site, head, say) {
    const title = head < 0 ? say("mean") : say("head", { head: head + 1 });
    const ariaLabel = say("headOf", { site: state.sites[site].name, head: title });
    const button = make("button", { type: "button", source, title, ariaLabel }, make("canvas"));
    button.addEventListener("click", () => choose({ site, head }));
    buttons.set(`${site}/${head}`, button);
    return make("span", { className: "regard-grid-cell", role: "gridcell" }, button);
  }

  update();
  return { update };
}
