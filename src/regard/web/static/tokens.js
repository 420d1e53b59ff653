// The tokens of both axes: all, with what they receive; or one that is picked, with where it looks or what looks at it.
//
//   const pair = createTokenPair({ queries, where, keys }, { onpick(axis, place) });   // three elements
//   pair.show({ source, rows, columns, picked, names: ["output", "input"], say, scale, kind, dark, language });

import { makeVisible } from "./labels.js";
import { computeAmount } from "./source.js";
import { createTokenStrip } from "./strip.js";
import { averageRows, readLine } from "./tables.js";

export function createTokenPair(parts, { onpick }) {
  const strips = {};

  function show({ source, rows, columns, picked, names, say, ...options }) {
    const keyWeights = picked?.axis === "column" ? undefined : picked ? readLine(source, "row", picked.place) : averageRows(source);
    const queryWeights = picked?.axis === "column" ? readLine(source, "column", picked.place) : undefined;
    const token = picked && makeVisible((picked.axis === "row" ? rows : columns)[picked.place]);
    parts.where.textContent = picked ? say(picked.axis === "row" ? "fromRow" : "fromColumn", { token }) : say("whole");
    const place = (axis) => (picked?.axis === axis ? picked.place : undefined);
    updateStrip("queries", "row", { ...options, tokens: rows, weights: queryWeights, chosen: place("row"), name: say(names[0]) });
    updateStrip("keys", "column", { ...options, tokens: columns, weights: keyWeights, chosen: place("column"), name: say(names[1]) });
  }

  function updateStrip(name, axis, options) {
    const amounts = options.weights && computeAmounts(options.weights, options);
    strips[name] ??= createTokenStrip(parts[name], { ...options, amounts, onchoose: (place) => onpick(axis, place) });
    strips[name].update({ ...options, amounts });
  }

  return { show, strips };
}

// A line of weights by its own largest, unless weights are to be colored as they are.
function computeAmounts(weights, { scale, kind }) {
  const largest = weights.reduce((most, one) => Math.max(most, Math.abs(one)), 0);
  return Array.from(weights, (one) => computeAmount(one, scale === "none" ? "none" : "row", largest, largest, kind === "difference"));
}

/** Labels, or numbers in their place. */
export function listTokens(labels) {
  return typeof labels === "number" ? Array.from({ length: labels }, (_, place) => String(place)) : labels;
}
