// Tokens and numbers as they are shown.

const BLANKS = { " ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍" };

const SIGNS = new Intl.Segmenter();

// What cannot be seen, or would reorder what stands beside the token; a blank between two words can be seen.
const HIDDEN = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|^ | $|(?<=\s) | (?=\s)/gu;

/** A token with its blanks, control characters and turns of direction made visible. Always text, never markup. */
export function makeVisible(token) {
  if (token === "") return "∅";
  return token.replace(HIDDEN, (sign) => {
    return BLANKS[sign] ?? `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  });
}

/** At most so many signs, the last of them an ellipsis if some are left out; no sign is cut in two. */
export function shorten(text, most) {
  if (text.length <= most) return text; // a sign is one unit or more
  const signs = [...SIGNS.segment(text)].map((part) => part.segment);
  return signs.length <= most ? text : `${signs.slice(0, most - 1).join("")}…`;
}

/** The label of a place on an axis; an axis without labels counts from 0, as Python does. */
export function labelAt(labels, place) {
  return typeof labels === "number" || labels[place] === undefined ? String(place) : makeVisible(labels[place]);
}

/** How many places an axis has. */
export function countLabels(labels) {
  return typeof labels === "number" ? labels : labels.length;
}

/** The smallest of 1, 2, 5, 10, 20 … that is at least so large: a step that is easy to count in. */
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= least);
}

/** The shortest decimal that is this float32 and no other: exact, and no digit too many. */
export function formatExactly(value) {
  if (!Number.isFinite(value)) return String(value);
  const single = Math.fround(value);
  for (let digits = 1; digits < 9; digits += 1) {
    const text = single.toPrecision(digits);
    if (Math.fround(Number(text)) === single) return formatPlain(text);
  }
  return formatPlain(single.toPrecision(9));
}

function formatPlain(text) {
  const number = Number(text);
  const small = number !== 0 && Math.abs(number) < 1e-6;
  if (small) return text.replace(/\.?0+e/, "e").replace("-", (sign, place) => (place === 0 ? "−" : sign));
  const fixed = text.includes("e") ? number.toString() : text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return fixed.replace(/^-/, "−");
}

/** A score with two digits behind the point, and a real minus. */
export function formatScore(score) {
  return score.toFixed(2).replace("-", "−");
}
