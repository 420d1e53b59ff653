// The hypotheses of a search as a tree. What several share stands once; a line forks where complete hypotheses part, with the
// best of what was given up there. The rest of what was given up opens on a click. Lines wrap: the tree fits any width.
//
//   const tree = createBeamTree(element, { language, onchoose(number) });
//   tree.show(branches, { hypotheses, chosen });   // branches: Map from number to { number, parent, word, log_prob, score }

import { createButton, make } from "../controls.js";
import { formatScore, makeVisible, shorten } from "../labels.js";
import { createFormatter } from "../words.js";
import { plantTree } from "./branches.js";

const BESIDE = 2; // branches that were given up at a fork and are shown at once
const LINES = 40; // that are shown at once
const [LONG, EDGE] = [28, 8]; // words of a line that is shortened, and how many stay at its ends

export function createBeamTree(element, { language, onchoose }) {
  const say = createFormatter(language);
  const place = make("div", { className: "tree", role: "group", ariaLabel: say("tree") });
  element.append(place);
  const open = new Set(); // names of what was opened, while the same search is shown
  let shown; // { branches, hypotheses, chosen }

  place.addEventListener("keydown", (event) => {
    const node = event.target.closest("[data-number]");
    const next = node && findNeighbor(node, event.key);
    if (!next) return;
    event.preventDefault();
    setStop(next);
    next.focus();
  });
  place.addEventListener("click", (event) => {
    const node = event.target.closest("[data-number]");
    if (node) onchoose(Number(node.dataset.number));
  });

  function findNeighbor(node, key) {
    const nodes = [...place.querySelectorAll("[data-number]")];
    const lines = [...place.querySelectorAll(".line")];
    const line = lines.indexOf(node.closest(".line"));
    const at = (step) => lines[line + step]?.querySelector("[data-number]");
    const moves = { ArrowLeft: () => nodes[nodes.indexOf(node) - 1], ArrowRight: () => nodes[nodes.indexOf(node) + 1], ArrowUp: () => at(-1), ArrowDown: () => at(1) };
    return moves[key]?.();
  }

  function setStop(node) {
    place.querySelector('[data-number][tabindex="0"]')?.setAttribute("tabindex", "-1");
    node?.setAttribute("tabindex", "0");
  }

  function show(branches, { hypotheses, chosen }) {
    if (shown?.branches !== branches) open.clear();
    shown = { branches, hypotheses, chosen };
    draw();
  }

  function draw() {
    const { branches, hypotheses, chosen } = shown;
    const kept = new Set([...hypotheses.flatMap(({ path }) => path), ...chosen]);
    const drawing = { kept, chosen: new Set(chosen), last: chosen.at(-1), best: new Set(hypotheses[0]?.path), left: open.has("all") ? Infinity : LINES };
    const lists = drawList(plantTree(branches), drawing, "root");
    place.replaceChildren(...lists);
    if (drawing.left < 0) place.append(createOpener("all", say("treeAll", { count: -drawing.left })));
    setStop(place.querySelector(`[data-number="${drawing.last}"]`) ?? place.querySelector("[data-number]"));
  }

  /** What grows from one branch: first what was kept, then the best that was given up, then a button for the others. */
  function drawList(nodes, drawing, name) {
    const kept = nodes.filter(({ number }) => drawing.kept.has(number));
    const given = nodes.filter(({ number }) => !drawing.kept.has(number));
    const few = open.has(name) ? given : given.slice(0, kept.length > 1 || name === "root" ? BESIDE : 0);
    const items = [...kept, ...few].map((node) => drawLine(node, drawing)).filter(Boolean);
    if (few.length < given.length && items.length) items.push(make("li", { className: "rest" }, createOpener(name, say("treeRest", { count: given.length - few.length }))));
    return items.length ? [make("ul", {}, ...items)] : [];
  }

  /** One line: words until complete hypotheses part, and below it what they part into. */
  function drawLine(first, drawing) {
    drawing.left -= 1;
    if (drawing.left < 0) return undefined;
    const nodes = followLine(first, drawing.kept);
    const passed = nodes.slice(0, -1).flatMap(({ children }, place) => children.filter((child) => child !== nodes[place + 1]));
    const line = make("div", { className: "line" }, ...drawWords(nodes, drawing));
    const name = `line ${first.number}`;
    if (passed.length && !open.has(name)) line.append(createOpener(name, `+${passed.length}`, say("treePassed", { count: passed.length })));
    const last = nodes.at(-1);
    const item = make("li", { className: drawing.kept.has(first.number) ? "" : "given" }, line);
    if (open.has(name)) item.append(make("ul", { className: "passed" }, ...passed.map((node) => drawLine(node, drawing)).filter(Boolean)));
    item.append(...drawList(last.children, drawing, `fork ${last.number}`));
    return item;
  }

  function drawWords(nodes, drawing) {
    const name = `words ${nodes[0].number}`;
    const words = nodes.map((node) => drawWord(node, drawing));
    if (nodes.length <= LONG || open.has(name)) return words;
    const between = nodes.length - 2 * EDGE;
    return [...words.slice(0, EDGE), createOpener(name, `… ${between} …`, say("treeWords", { count: between })), ...words.slice(-EDGE)];
  }

  function drawWord({ number, word, score, share, children }, { chosen, last, best }) {
    const ended = score !== null;
    const dead = !ended && !children.length;
    const percent = `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
    const name = ended ? say("nodeEnd", { score: formatScore(score) }) : say("node", { word: formatWord(word), share: percent });
    const kinds = ["node", ended && "ended", dead && "dead", best.has(number) && "best", chosen.has(number) && "chosen", number === last && "last"];
    const label = dead ? `${name}, ${say("given")}` : name;
    const button = make("button", {
      type: "button", className: kinds.filter(Boolean).join(" "), tabIndex: -1, title: label, ariaLabel: label, ariaPressed: String(number === last),
      textContent: ended ? `■ ${formatScore(score)}` : shorten(formatWord(word), 24),
    });
    button.dataset.number = number;
    button.style.setProperty("--share", String(share));
    return button;
  }

  function createOpener(name, text, label = text) {
    return createButton(text, () => {
      open.add(name);
      draw();
      place.querySelector('[data-number][tabindex="0"]')?.focus();
    }, { className: "opener", title: label, ariaLabel: label, ariaExpanded: "false" });
  }

  return { show };
}

/** The nodes from one on, as long as exactly one of the next was kept; of what was given up, as long as there is only one. */
function followLine(first, kept) {
  const nodes = [first];
  for (;;) {
    const { children } = nodes.at(-1);
    const next = kept.has(first.number) ? children.filter(({ number }) => kept.has(number)) : children;
    if (next.length !== 1) return nodes;
    nodes.push(next[0]);
  }
}

function formatWord(word) {
  return makeVisible(word.replace(/^▁(?=.)/u, ""));
}
