// The kernel of a notebook as a source of weights. The widget of regard.inspect.display.kernel_link, which is not shown,
// brings a way to ask; panels in cells, each with a script of its own, find it by its name.

const known = (globalThis[Symbol.for("regard.kernels")] ??= new Map()); // name → ask(part, values)
const CHANGED = "regard-kernel"; // event: a kernel came or went

/** What a widget does as soon as there is one: promises an ArrayBuffer for each question, until the widget goes. */
export function connectModel(model) {
  const [name, self] = [model.get("name"), crypto.getRandomValues(new Uint32Array(2)).join("-")];
  const waiting = new Map(); // question → { resolve, reject }
  model.on("msg:custom", ({ question, error }, buffers) => {
    const asked = waiting.get(question); // undefined: another window's
    waiting.delete(question);
    if (error) asked?.reject(new Error(error));
    else asked?.resolve(copyBuffer(buffers[0]));
  });
  let count = 0;
  const ask = (part, values) => new Promise((resolve, reject) => {
    const question = `${self}-${(count += 1)}`;
    waiting.set(question, { resolve, reject });
    model.send({ question, part, values });
  });
  setKernel(name, ask);
  return () => {
    setKernel(name, undefined);
    for (const { reject } of waiting.values()) reject(new Error("kernel: got no answer, expected one; fix: run the cell again"));
  };
}

// Buffers are views into messages, and their numbers may begin at any byte.
function copyBuffer(view) {
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
}

function setKernel(name, ask) {
  if (ask) known.set(name, ask);
  else known.delete(name);
  document.dispatchEvent(new CustomEvent(CHANGED, { detail: name }));
}

/** Calls `listener(ask)` when there is a kernel of this name, now or later, and `listener(undefined)` when it goes. */
export function onKernel(name, listener) {
  document.addEventListener(CHANGED, ({ detail }) => { if (detail === name) listener(known.get(name)); });
  if (known.has(name)) listener(known.get(name));
}
