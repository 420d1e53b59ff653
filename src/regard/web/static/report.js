// A report: the recording stands in the page itself.

import { createInspector } from "./inspector.js";

const recording = JSON.parse(document.getElementById("recording").textContent);
const element = document.getElementById("report");
createInspector(element, recording, { language: recording.language ?? undefined }).then(
  (page) => {
    element.dataset.ready = "yes";
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.choose({}));
  },
  (error) => element.append(`${error}`),
);
