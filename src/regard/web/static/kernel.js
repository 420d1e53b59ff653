// The kernel of a notebook as a source of weights. The widget of regard.inspect.display.kernel_link, which is not shown,
// brings a way to ask; panels in cells, each with a script of its own, find it by its name.

import { createFormatter } from "./words.js";

const known = (globalThis[Symbol.for("regard.kernels")] ??= new Map()); // name → { ask(part, values), silent }
const CHANGED = "regard-kernel"; // event: a kernel came, fell silent, spoke again or went
const PATIENCE = 20_000; // milliseconds without an answer, though one is due, after which a kernel is silent
const DOUBT = 4_000; // the same, after a notebook has said that something happened to its kernel

/** What a widget does as soon as there is one: promises an ArrayBuffer for each question, until the widget goes. */
export function connectModel(model) {
  const name = model.get("name");
  const line = createLine((message) => model.send(message), (silent) => setKernel(name, { ask: line.ask, silent }));
  model.on("msg:custom", line.hear);
  model.on("comm_live_update", line.check); // a notebook says so when its kernel is restarted, or is there again
  setKernel(name, { ask: line.ask, silent: false });
  return () => {
    line.close();
    setKernel(name, undefined);
  };
}

/**
 * Questions and answers over a line that may be dead: { ask, hear, check, close }. While nothing is heard though an
 * answer is due, the line is silent: what was asked fails, and one question is put again and again, each time after
 * twice as long, until there is an answer.
 */
function createLine(send, onsilence) {
  const self = crypto.getRandomValues(new Uint32Array(2)).join("-");
  const waiting = new Map(); // question → { resolve, reject }
  let [count, patience, silent, timer] = [0, PATIENCE, false, 0];

  function ask(part, values) {
    const question = `${self}-${(count += 1)}`;
    const answer = new Promise((resolve, reject) => waiting.set(question, { resolve, reject }));
    if (!timer) wait(patience);
    try {
      send({ question, part, values });
    } catch {
      if (!silent) wait(DOUBT); // a connection that was closed refuses
    }
    return answer;
  }

  function wait(time) {
    clearTimeout(timer);
    timer = time && setTimeout(giveUp, time);
  }

  function hear({ question, error }, buffers) {
    const asked = waiting.get(question); // undefined: another window's, or given up
    waiting.delete(question);
    if (error) asked?.reject(new Error(error));
    else asked?.resolve(copyBuffer(buffers[0]));
    patience = PATIENCE;
    wait(waiting.size ? patience : 0); // who answers one question has the others
    if (silent) onsilence(silent = false);
  }

  function giveUp() {
    failAll();
    if (silent) patience *= 2;
    else onsilence(silent = true);
    ask("summary", {}).catch(() => undefined);
  }

  function check() {
    ask("summary", {}).catch(() => undefined);
    wait(DOUBT);
  }

  function failAll() {
    wait(0);
    for (const { reject } of waiting.values()) reject(new Error(createFormatter()("noKernel")));
    waiting.clear();
  }

  return { ask, hear, check, close: failAll };
}

// Buffers are views into messages, and their numbers may begin at any byte.
function copyBuffer(view) {
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}

function setKernel(name, kernel) {
  if (kernel) known.set(name, kernel);
  else known.delete(name);
  document.dispatchEvent(new CustomEvent(CHANGED, { detail: name }));
}

/** Calls `listener({ ask, silent })` whenever the kernel of this name changes, now too if there is one; without it when it goes. */
export function onKernel(name, listener) {
  document.addEventListener(CHANGED, ({ detail }) => { if (detail === name) listener(known.get(name)); });
  if (known.has(name)) listener(known.get(name));
}
