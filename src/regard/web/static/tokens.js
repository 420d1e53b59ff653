// The tokens of both axes: all, with what they receive; or one that is picked, with where it looks or what looks at it.
//
//   const pair = tokenPair({ said, looked, read }, { onpick(axis, place) });   // three elements
//   pair.show({ source, rows, columns, picked, names: ["said", "read"], say, scale, kind, dark, language });

import { visible } from "./labels.js";
import { amountOf } from "./source.js";
import { tokenStrip } from "./strip.js";
import { line, received } from "./tables.js";

export function tokenPair(parts, { onpick }) {
  const strips = {};

  function show({ source, rows, columns, picked, names, say, ...options }) {
    const looks = picked?.axis === "column" ? undefined : picked ? line(source, "row", picked.place) : received(source);
    const looked = picked?.axis === "column" ? line(source, "column", picked.place) : undefined;
    const token = picked && visible((picked.axis === "row" ? rows : columns)[picked.place]);
    parts.looked.textContent = picked ? say(picked.axis === "row" ? "fromRow" : "fromColumn", { token }) : say("whole");
    const place = (axis) => (picked?.axis === axis ? picked.place : undefined);
    strip("said", "row", { ...options, tokens: rows, weights: looked, chosen: place("row"), name: say(names[0]) });
    strip("read", "column", { ...options, tokens: columns, weights: looks, chosen: place("column"), name: say(names[1]) });
  }

  function strip(name, axis, options) {
    const amounts = options.weights && amountsOf(options.weights, options);
    strips[name] ??= tokenStrip(parts[name], { ...options, amounts, onchoose: (place) => onpick(axis, place) });
    strips[name].update({ ...options, amounts });
  }

  return { show, strips };
}

// A line of weights by its own largest, unless weights are to be colored as they are.
function amountsOf(weights, { scale, kind }) {
  const largest = weights.reduce((most, one) => Math.max(most, Math.abs(one)), 0);
  return Array.from(weights, (one) => amountOf(one, scale === "none" ? "none" : "row", largest, largest, kind === "difference"));
}

/** Labels, or numbers in their place. */
export function tokensOf(labels) {
  return typeof labels === "number" ? Array.from({ length: labels }, (_, place) => String(place + 1)) : labels;
}
