// A report: the recording stands in the page itself.

import { isDark } from "./colors.js";
import { createChapterView } from "./chapters.js";
import { createToggle } from "./controls.js";
import { createFormatter } from "./words.js";

const recording = JSON.parse(document.getElementById("recording").textContent);
const element = document.getElementById("report");
const theme = createToggle((value) => {
  document.documentElement.dataset.theme = value;
  showTheme();
  view?.panel.update();
});
let view;

function showTheme() {
  theme.set([["light", "☀"], ["dark", "☾"]], isDark() ? "dark" : "light");
}

function setLanguage(language) {
  document.documentElement.lang = language;
  theme.label(createFormatter(language)("theme"));
}

showTheme();
createChapterView(element, recording, { language: recording.language ?? undefined, tools: [theme.element], onlanguage: setLanguage }).then(
  (made) => {
    view = made;
    element.dataset.ready = "yes";
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { showTheme(); view.panel.update(); });
  },
  (error) => element.append(`${error}`),
);
