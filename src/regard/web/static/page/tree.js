// The hypotheses of a search as a tree: words from left to right, one line for each that was kept or given up.
//
//   const tree = createBeamTree(element, { language, onchoose(number) });
//   tree.show(branches, { best, chosen });   // branches: Map from number to { number, parent, word, log_prob, score }

import { makeSvg } from "../controls.js";
import { makeVisible, shorten } from "../labels.js";
import { createFormatter } from "../words.js";

const [ACROSS, DOWN] = [92, 26];

export function createBeamTree(element, { language, onchoose }) {
  const picture = makeSvg("svg", { class: "tree", role: "group" });
  element.append(picture);
  let places = new Map();

  picture.addEventListener("keydown", (event) => {
    const node = Number(event.target.closest("[data-number]")?.dataset.number);
    if (!places.has(node)) return;
    if (event.key === "Enter" || event.key === " ") onchoose(node);
    else if (!move(node, event.key)) return;
    event.preventDefault();
  });
  picture.addEventListener("click", (event) => {
    const node = event.target.closest("[data-number]");
    if (node) onchoose(Number(node.dataset.number));
  });

  function move(node, key) {
    const { x, y, parent } = places.get(node);
    const others = [...places.values()];
    const next = {
      ArrowLeft: () => parent,
      ArrowRight: () => others.find((other) => other.parent === node)?.number,
      ArrowUp: () => others.filter((other) => other.x === x && other.y < y).sort((a, b) => b.y - a.y)[0]?.number,
      ArrowDown: () => others.filter((other) => other.x === x && other.y > y).sort((a, b) => a.y - b.y)[0]?.number,
    }[key]?.();
    const found = picture.querySelector(`[data-number="${next}"]`);
    if (!found) return key.startsWith("Arrow");
    picture.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    found.setAttribute("tabindex", "0");
    found.focus();
    return true;
  }

  function show(branches, { best = [], chosen = [] } = {}) {
    places = layOutTree(branches, new Set(best));
    const say = createFormatter(language);
    picture.setAttribute("aria-label", say("tree"));
    const [width, height] = [...places.values()].reduce(([right, low], { x, y }) => [Math.max(right, x), Math.max(low, y)], [0, 0]);
    picture.setAttribute("width", String((width + 1) * ACROSS + 20));
    picture.setAttribute("height", String((height + 1) * DOWN + 10));
    const bestOnes = new Set(best);
    const chosenOnes = new Set(chosen);
    const parents = new Set([...places.values()].map(({ parent }) => parent));
    const edges = [...places.values()].map((node) => drawEdge(node, chosenOnes));
    const nodes = [...places.values()].map((node) => drawNode(node, { bestOnes, chosenOnes, parents, last: chosen.at(-1), say }));
    picture.replaceChildren(...edges, ...nodes);
    (picture.querySelector(`[data-number="${chosen.at(-1)}"]`) ?? nodes[0])?.setAttribute("tabindex", "0");
  }

  function drawEdge({ x, y, parent, number }, chosen) {
    const from = places.get(parent);
    const [x1, y1, x2, y2] = [((from?.x ?? -1) + 1) * ACROSS - 4, computeRowCenter(from?.y ?? 0), x * ACROSS + 8, computeRowCenter(y)];
    const d = `M${Math.max(0, x1)},${y1} C${x1 + 8},${y1} ${x2 - 10},${y2} ${x2},${y2}`;
    return makeSvg("path", { d, class: chosen.has(number) ? "edge chosen" : "edge" });
  }

  function drawNode(node, { bestOnes, chosenOnes, parents, last, say }) {
    const { number, x, y, word, score, share } = node;
    const ended = score !== null;
    const dead = !ended && !parents.has(number);
    const kinds = ["node", ended && "ended", dead && "dead", bestOnes.has(number) && "best", chosenOnes.has(number) && "chosen", number === last && "last"];
    const percent = `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
    const name = ended ? say("nodeEnd", { score: score.toFixed(2) }) : say("node", { word: formatWord(word), share: percent });
    const label = dead ? `${name}, ${say("given")}` : name;
    const attributes = {
      class: kinds.filter(Boolean).join(" "), "data-number": number, role: "button", tabindex: -1,
      "aria-pressed": number === last, "aria-label": label, transform: `translate(${x * ACROSS + 8} ${y * DOWN + 4})`,
    };
    return makeSvg("g", attributes,
      makeSvg("title", {}, label),
      makeSvg("rect", { width: ACROSS - 14, height: DOWN - 5, rx: 4 }),
      makeSvg("rect", { class: "share", width: (ACROSS - 14) * share, height: 3, y: DOWN - 8 }),
      makeSvg("text", { x: 6, y: 14 }, ended ? `■ ${score.toFixed(2)}` : shorten(formatWord(word), 10)));
  }

  return { show };
}

function computeRowCenter(row) {
  return row * DOWN + DOWN / 2 + 2;
}

function formatWord(word) {
  return makeVisible(word.replace(/^▁(?=.)/u, ""));
}

/** Places in columns (steps) and rows (one for each leaf; the best hypothesis is on the first). */
function layOutTree(branches, best) {
  const children = new Map();
  for (const branch of branches.values()) {
    if (!children.has(branch.parent)) children.set(branch.parent, []);
    children.get(branch.parent).push(branch);
  }
  const places = new Map();
  let rows = 0;
  const order = (one, other) => Number(best.has(other.number)) - Number(best.has(one.number)) || other.log_prob - one.log_prob;
  const waiting = (children.get(-1) ?? []).sort(order).reverse().map((branch) => [branch, 0, 0]);
  while (waiting.length) {
    const [branch, x, before] = waiting.pop();
    const parent = places.get(branch.parent);
    const first = parent ? !parent.taken : rows === 0;
    if (!first) rows += 1;
    if (parent) parent.taken = true;
    const place = { ...branch, x, y: rows, share: Math.exp(branch.log_prob - before), taken: false };
    places.set(branch.number, place);
    waiting.push(...(children.get(branch.number) ?? []).sort(order).reverse().map((child) => [child, x + 1, branch.log_prob]));
  }
  return places;
}
