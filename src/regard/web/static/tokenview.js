// The tokens of both axes below a drawing, the picture or sound that the keys are parts of, and the words to mask.

import { createButton, make } from "./controls.js";
import { countLabels, makeVisible } from "./labels.js";
import { createMediaView } from "./media.js";
import { createTokenPair, listTokens } from "./tokens.js";

const MOST = 2000; // tokens that are written

export function createTokenView(panel) {
  const parts = Object.fromEntries(["queries", "keys", "beside"].map((name) => [name, make("div", { className: `part-${name}` })]));
  const where = make("p", { className: "where" });
  const masks = make("p", { className: "masks" });
  const heading = make(panel.heading);
  const element = make("div", { className: "strips" }, heading, parts.queries, where, parts.keys, masks);
  const pair = createTokenPair({ ...parts, where }, { onpick: (axis, place) => panel.pick({ [axis]: place }) });
  const media = createMediaView(parts.beside, { onchoose: (row) => panel.pick({ row }), onregion: (column) => panel.pick({ column }) });
  let tokens = {}; // lists, which stay the same objects while the labels do

  function listOnce(axis) {
    const labels = panel.labels[axis];
    if (tokens[axis]?.labels !== labels) tokens = { ...tokens, [axis]: { labels, list: listTokens(labels) } };
    return tokens[axis].list;
  }

  function show() {
    const { say, source, picked, labels, options, name, names, beside, passing } = panel;
    const few = !source.tiled && countLabels(labels.rows) + countLabels(labels.columns) <= MOST;
    element.hidden = !few || panel.drawing === "heads";
    if (element.hidden && !beside && few) return void media.show(undefined, { source });
    if (!few) return void media.show(undefined, { source });
    const [rows, columns] = [listOnce("rows"), listOnce("columns")];
    const one = picked && (picked.row !== undefined ? { axis: "row", place: picked.row } : { axis: "column", place: picked.column });
    parts.keys.hidden = Boolean(beside); // a picture or a sound says more than numbers of its parts
    heading.textContent = say("tokens");
    pair.show({ ...options, source, rows, columns, picked: one, names, say });
    media.show(beside, { ...options, name, source, rows, picked: one });
    if (panel.mask && !passing && !panel.asWords) showMasks(columns);
    else masks.replaceChildren();
    masks.hidden = !panel.mask;
  }

  // A word of the source that is picked can be masked; the last token is the end and cannot.
  function showMasks(columns) {
    const { mask, site, picked, say } = panel;
    const masked = mask.places();
    const crossed = site.columns === mask.length();
    [...pair.strips.keys.element.children].forEach((token, place) => token.classList.toggle("masked", crossed && masked.includes(place)));
    const buttons = [];
    const { column } = picked ?? {};
    if (crossed && column !== undefined && column < columns.length - 1) {
      const word = masked.includes(column) ? "unmaskWord" : "maskWord";
      buttons.push(createButton(say(word, { token: makeVisible(columns[column]) }), () => mask.toggle(column)));
    }
    if (masked.length) buttons.push(createButton(say("unmaskAll"), () => mask.clear()));
    masks.replaceChildren(...buttons);
  }

  return { element, media: parts.beside, show };
}
