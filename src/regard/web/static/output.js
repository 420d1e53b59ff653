// The output of one cell of a notebook: the recording stands in it, and so does a still picture, which the panel replaces.
// The script that this is bundled into has the constant `style`.

import { createChapterView } from "./chapters.js";
import { make } from "./controls.js";
import { createHostTheme } from "./host.js";
import { onKernel } from "./kernel.js";
import { loadServedSites } from "./served.js";

const output = document.currentScript?.parentElement ?? document.querySelector(".regard-output:not([data-ready])");

async function start() {
  const recording = JSON.parse(output.querySelector("script[type='application/json']").textContent);
  const host = make("div");
  host.dataset.lmSuppressShortcuts = "true"; // the focus is in it: a notebook in command mode looks here first
  const place = make("div", { className: "regard-cell" });
  const root = host.attachShadow({ mode: "open" }); // the notebook's styles stay out, and ours stay in
  root.append(make("style", { textContent: style }), place);
  output.append(host);
  let view;
  const theme = createHostTheme(host, () => view?.panel.update());
  view = await createChapterView(place, recording, { language: recording.language ?? undefined, dark: theme.isDark });
  output.querySelector("img")?.remove();
  output.dataset.ready = "yes";
  if (recording.kernel) followKernel(view, recording.kernel);
}

/** What was pooled to keep the cell small comes whole, by tiles, while the kernel is there; else the cell says why not. */
function followKernel(view, name) {
  let turn = 0;
  view.setKernel("absent");
  onKernel(name, async (kernel) => {
    const mine = (turn += 1); // a kernel may fall silent while it is asked
    const state = !kernel ? "gone" : kernel.silent ? "silent" : "yes";
    try {
      const others = state === "yes" ? await loadServedSites(kernel.ask) : undefined;
      if (mine === turn) await view.setKernel(state, others);
      if (mine === turn) output.dataset.kernel = state;
    } catch (error) {
      if (mine === turn) view.report(error);
    }
  });
}

if (output && !output.dataset.ready) {
  start().catch((error) => {
    output.dataset.ready = "failed"; // the picture stays
    console.error(error);
  });
}
