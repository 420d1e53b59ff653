// Recordings: those that are served, and files that are opened or dropped here.

import { make } from "../controls.js";
import { createFormatter } from "../words.js";
import { postFile, postJson } from "./api.js";
import { createAttentionPanel, createButton } from "./attention.js";
import { createFileChooser, findSizeError } from "./files.js";
import { createSites } from "./sources.js";

export function createRecordingView(element, { state, language, server, report, session }) {
  const say = createFormatter(language);
  const title = make("h2", { className: "name" });
  const notes = make("ul", { className: "note" });
  const card = make("section", { className: "card", hidden: true }, title, notes);
  const files = make("div", { className: "hypotheses", role: "group", ariaLabel: say("servedFiles") });
  const drop = make("section", { className: "card drop" }, files);
  const chooser = createFileChooser(drop, { name: say("openRecording"), hint: say("dropHere"), accept: ".safetensors,.regard", onfile: send });
  drop.append(chooser.element, make("p", { className: "note", textContent: say("noRecording") }));
  element.append(drop, card);
  const panel = createAttentionPanel(card, { state, language, report });

  function renderFiles() {
    files.replaceChildren(...server.files.map((name) => {
      const one = createButton(name, () => {
        state.set({ file: name, site: -1, head: -1, pick: "", look: "" });
        openServed(name);
      }, { className: "hypothesis" });
      one.setAttribute("aria-pressed", String(name === state.get("file")));
      return one;
    }));
    files.hidden = !server.files.length;
  }

  async function openServed(name) {
    renderFiles();
    await showAnswer(postJson(`files/${encodeURIComponent(name)}`, {}), name);
  }

  async function send(file) {
    const error = findSizeError(file, server.limits.upload, `regard serve ${file.name}`);
    if (error) return report(error);
    state.set({ file: "", site: -1, head: -1, pick: "", look: "" });
    renderFiles();
    return showAnswer(postFile("recordings", file), file.name);
  }

  async function showAnswer(answer, name) {
    try {
      session.recording = { ...(await answer), title: name };
      await show();
    } catch (error) {
      report(error);
    }
  }

  async function show() {
    const { recording } = session;
    card.hidden = false;
    title.textContent = recording.title;
    notes.replaceChildren(...recording.notes.map((text) => make("li", { textContent: text })));
    await panel.show(createSites(recording));
  }

  renderFiles();
  if (state.get("file")) openServed(state.get("file"));
  else if (session.recording) show();
  return { update: () => panel.update(), destroy: () => chooser.destroy() };
}
