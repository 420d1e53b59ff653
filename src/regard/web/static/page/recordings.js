// Recordings: those that are served, and files that are opened or dropped here.

import { createButton, make } from "../controls.js";
import { createAttentionPanel } from "../panel.js";
import { createFormatter } from "../words.js";
import { getJson, postFile, postJson } from "./api.js";
import { createFileChooser, findSizeError } from "./files.js";
import { createSites } from "./sources.js";

export function createRecordingView(element, { state, language, server, report, session }) {
  const say = createFormatter(language);
  const title = make("h2", { className: "name" });
  const notes = make("ul", { className: "note" });
  const card = make("section", { className: "card", hidden: true }, title, notes);
  const files = make("div", { className: "hypotheses", role: "group", ariaLabel: say("servedFiles") });
  const drop = make("section", { className: "card drop recordings" }, files);
  const chooser = createFileChooser(drop, { name: say("openRecording"), hint: say("dropHere"), accept: ".safetensors,.regard", onfile: send });
  const opening = state.get("file") || state.get("kept") || session.recording;
  drop.append(chooser.element, make("p", { className: "note", textContent: say("noRecording"), hidden: Boolean(opening) }));
  element.append(drop, card);
  const panel = createAttentionPanel(card, { state, language, report, names: ["target", "source"] });

  function renderFiles() {
    files.replaceChildren(...server.files.map((name) => {
      const one = createButton(name, () => {
        state.go({ file: name, kept: "", site: -1, head: -1, pick: "", look: "" });
        openServed(name);
      }, { className: "hypothesis" });
      one.setAttribute("aria-pressed", String(name === state.get("file") && !state.get("kept")));
      return one;
    }));
    files.hidden = !server.files.length;
  }

  async function openServed(name) {
    renderFiles();
    await showAnswer(postJson(`files/${encodeURIComponent(name)}`, {}), name);
  }

  async function send(file) {
    const error = findSizeError(file, server.limits.upload, `regard serve ${file.name}`, say);
    if (error) return report(error);
    session.sent = file;
    return showAnswer(postFile("recordings", file), file.name, true);
  }

  /** One that was sent before, by its link. A server that was started anew does not have it; perhaps this page does. */
  async function openKept(name, kept) {
    const known = session.sent?.name === name;
    await showAnswer(getJson(`recordings/${encodeURIComponent(kept)}`).catch((error) => {
      if (error.status === 404 && known) return postFile("recordings", session.sent);
      throw error;
    }), name, true);
  }

  async function showAnswer(answer, name, sent = false) {
    try {
      const recording = { ...(await answer), title: name };
      const another = sent && recording.recording !== state.get("kept");
      if (another) state.go({ file: name, kept: recording.recording, site: -1, head: -1, pick: "", look: "" });
      session.recording = recording;
      renderFiles();
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
  if (session.recording && session.recording.recording === state.get("kept")) show();
  else if (state.get("kept")) openKept(state.get("file"), state.get("kept"));
  else if (state.get("file")) openServed(state.get("file"));
  else if (session.recording) show();
  return { update: () => panel.update(), destroy: () => chooser.destroy() };
}
