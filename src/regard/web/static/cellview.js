// What made the number in the cell that is picked: its place in the row, the formula filled in, the terms of its score.

import { createButton, make } from "./controls.js";
import { computeTerms, placeWeight } from "./explanation.js";
import { formatExactly, labelAt, shorten } from "./labels.js";
import { ALIGNMENT, MEAN } from "./sites.js";

const SHOWN = 8; // terms, the largest ones
const SCORES = { tanh: "Σ v · tanh(q + k)", square: "−Σ v · (q − k)²", absolute: "−Σ v · |q − k|" };
const DOTS = { ScaledDot: "q · k / √d", "scaled dot product": "q · k / √d", Dot: "q · k" };

export function createCellView(panel) {
  const heading = make(panel.heading);
  const closing = createButton("×", () => close(), { className: "regard-plain" });
  const body = make("div", { className: "regard-made-body" });
  const element = make("section", { className: "regard-made", hidden: true, ariaLive: "polite" },
    make("div", { className: "regard-title" }, heading, closing), body);
  let shown; // which cell of which head, so that nothing is asked for twice
  element.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });

  function close() {
    panel.change({ pick: "" });
    panel.drawings.map?.canvas.focus();
  }

  async function show() {
    const { picked, drawing, labels, say, source, site, head } = panel;
    element.hidden = drawing !== "map" || picked?.row === undefined || picked.column === undefined;
    if (element.hidden) { shown = undefined; return; }
    const { row, column } = picked;
    const name = [panel.language, panel.place, head, row, column, panel.asWords].join();
    if (shown?.name === name && shown.source === source) return;
    shown = { name, source };
    closing.setAttribute("aria-label", say("close"));
    heading.textContent = say("madeOf", { row: labelAt(labels.rows, row), column: labelAt(labels.columns, column) });
    const rows = site.vectors && !findReason() ? Math.min(site.vectors, SHOWN + 1) : 0;
    element.classList.toggle("full", rows > 0);
    element.style.setProperty("--rows", rows);
    const [reason, made] = await ask(row, column).catch((error) => [error.message, undefined]);
    if (shown?.name !== name || shown.source !== source) return;
    body.replaceChildren(...(made ? describe(made, reason) : [make("p", { className: "note", textContent: reason })]));
  }

  /** Why vectors are not shown, if they are not, and what is known. */
  async function ask(row, column) {
    const { site, head, source, say } = panel;
    const reason = findReason();
    if (reason && !source.tiled) return [say(reason), placeWeight(source, row, column)];
    const made = await site.explain(Math.max(head, MEAN), row, column);
    if (made.weight === null) return [say("madeStatistics"), undefined];
    return [reason ? say(reason) : made.facts ? "" : say("madeUnknown"), made];
  }

  /** The word for why no single score made what is shown, if none did. */
  function findReason() {
    const { site, head, asWords } = panel;
    return asWords ? "madeWords" : head === MEAN && site.heads > 1 ? "madeMean" : head === ALIGNMENT ? "madeAlignment"
      : head < MEAN ? "madeRollout" : site.kind === "difference" ? "madeDifference" : (site.step ?? [1]).some((one) => one > 1) ? "madePooled" : "";
  }

  function describe(made, reason) {
    const { say } = panel;
    const share = made.rowSum ? made.weight / made.rowSum : 0;
    const values = { weight: formatExactly(made.weight), rank: made.rank, keys: made.keys, share: formatPercent(share) };
    const place = make("p", { className: "regard-made-place", textContent: say(panel.site.kind === "difference" ? "madeChange" : "madePlace", values) });
    if (!made.facts) return [place, make("p", { className: "note", textContent: reason })];
    return [place, ...describeFormula(made), describeTerms(made.facts), describeRest(made.facts)];
  }

  function describeFormula({ weight, facts }) {
    const { say } = panel;
    const name = facts.form === "dot" ? (DOTS[facts.scoreName] ?? "Σ q′ · k′") : SCORES[facts.form];
    const lines = [[say("scoreWord"), `${name} = ${format(facts.score)}`, facts.scoreName]];
    const [form, filled, title] = facts.hidden ? [say("hiddenByMask"), "", ""] : fillNormalizer(facts);
    lines.push([say("weightWord"), filled ? `${form} = ${filled} = ${format(weight)}` : form, title]);
    return [make("dl", { className: "regard-formula" }, ...lines.flatMap(([term, text, title]) => [make("dt", { textContent: term }), make("dd", { textContent: text, title })]))];
  }

  /** A row for each of the largest terms, with a bar to the right if it raised the score, to the left if it lowered it. */
  function describeTerms(facts) {
    const { say } = panel;
    const terms = computeTerms(facts).map((term, at) => ({ term, at }));
    const order = [...terms].sort((one, other) => Math.abs(other.term) - Math.abs(one.term)).slice(0, SHOWN);
    const most = Math.abs(order[0]?.term ?? 0) || 1;
    const rest = terms.length - order.length;
    const left = facts.score - order.reduce((total, { term }) => total + term, 0);
    const head = make("tr", {}, ...["dimension", "query", "key", "termWord"].map((word) => make("th", { scope: "col", textContent: say(word) })), make("td"));
    const rows = order.map(({ term, at }) => createTermRow(String(at), facts.query[at], facts.key[at], term, most));
    if (rest > 0) rows.push(createTermRow(say("otherDimensions", { count: rest }), undefined, undefined, left, most));
    const caption = make("caption", { textContent: say("termsCaption", { shown: order.length, all: terms.length }) });
    return make("table", { className: "regard-terms" }, caption, make("thead", {}, head), make("tbody", {}, ...rows));
  }

  function createTermRow(name, query, key, term, most) {
    const bar = make("span", { className: term < 0 ? "regard-term less" : "regard-term" });
    bar.style.setProperty("--size", `${(50 * Math.min(1, Math.abs(term) / most)).toFixed(1)}%`);
    const cell = (number) => make("td", { textContent: number === undefined ? "" : format(number) });
    return make("tr", {}, make("th", { scope: "row", textContent: name }), cell(query), cell(key), make("td", { textContent: format(term, true) }), make("td", { className: "regard-term-cell", ariaHidden: "true" }, bar));
  }

  function describeRest({ bias, hidden, norm, normShare, normalizer, setting, scoreName }) {
    const { say } = panel;
    const facts = [
      ["biasWord", hidden ? "−∞" : format(bias)],
      ["maskName", say(hidden ? "maskHides" : "maskAllows")],
      ["normalizerWord", nameNormalizer(normalizer, setting)],
      ["mechanismWord", scoreName],
      ["valueLength", norm === null ? say("notKept") : format(norm)],
      ["lengthShare", normShare === null ? say("notKept") : `${formatPercent(normShare)} %`],
    ];
    return make("dl", { className: "regard-facts" }, ...facts.map(([word, text]) => make("div", {}, make("dt", { textContent: say(word) }), make("dd", { textContent: text }))));
  }

  return { element, show };
}

function nameNormalizer(name, setting) {
  if (name === "softmax") return (setting ?? 1) === 1 ? "softmax" : `softmax, τ = ${format(setting)}`;
  if (name === "entmax") return setting === 2 ? "sparsemax" : `entmax, α = ${format(setting)}`;
  return name;
}

/** The formula of a normalizer, the same with its numbers, and its name; no numbers if it takes more than a row. */
function fillNormalizer({ normalizer, score, bias, total, setting }) {
  const sum = bias ? `${format(score)} ${bias < 0 ? "−" : "+"} ${format(Math.abs(bias))}` : format(score);
  const [minus, inner] = total === null ? ["", ""] : [`${total < 0 ? "+" : "−"} ${format(Math.abs(total))}`, format(total)];
  if (normalizer === "sigmoid") return ["σ(s + b + c)", `σ(${sum} + ${format(setting ?? 0)})`, normalizer];
  if (total === null) return [`${normalizer}(s + b)`, "", normalizer];
  if (normalizer === "softmax" && (setting ?? 1) !== 1) return ["exp((s + b) / τ − log Σ exp)", `exp((${sum}) / ${format(setting)} ${minus})`, normalizer];
  if (normalizer === "softmax" || (normalizer === "entmax" && setting === 1)) return ["exp(s + b − log Σ exp)", `exp(${sum} ${minus})`, normalizer];
  if (normalizer === "softmax-plus-one") return ["exp(s + b − log(1 + Σ exp))", `exp(${sum} ${minus})`, normalizer];
  if (normalizer === "argmax") return ["[s + b = max(s + b)]", `[${sum} = ${inner}]`, normalizer];
  if (normalizer === "row-total") return ["s / Σ s", `${sum} / ${inner}`, normalizer];
  if (setting === 2) return ["[s + b − τ]₊", `[${sum} ${minus}]₊`, "sparsemax"];
  return ["[(α − 1)(s + b) − τ]₊ ^ (1 / (α − 1))", `[${format(setting - 1)} · (${sum}) ${minus}]₊ ^ ${format(1 / (setting - 1))}`, normalizer];
}

function formatPercent(share) {
  const percent = Math.abs(100 * share);
  return `${share < 0 ? "−" : ""}${percent >= 0.05 || percent === 0 ? percent.toFixed(1) : percent.toPrecision(1)}`;
}

function format(number, signed = false) {
  const size = Math.abs(number);
  const text = number === 0 ? "0" : size >= 1e-3 && size < 1e5 ? String(Number(size.toPrecision(4))) : size.toExponential(2);
  return `${number < 0 ? "−" : signed ? "+" : ""}${shorten(text, 12)}`;
}
