// Recordings: those that are served, and files that are opened or dropped here.

import { make } from "../controls.js";
import { speaker } from "../words.js";
import { postFile, postJson } from "./api.js";
import { attentionPanel, button } from "./attention.js";
import { fileChooser, tooLarge } from "./dropping.js";
import { recordingSites } from "./sources.js";

export function recordingView(element, { state, language, server, report, session }) {
  const say = speaker(language);
  const title = make("h2", { className: "name" });
  const notes = make("ul", { className: "note" });
  const card = make("section", { className: "card", hidden: true }, title, notes);
  const files = make("div", { className: "hypotheses" });
  files.setAttribute("role", "group");
  files.setAttribute("aria-label", say("servedFiles"));
  const drop = make("section", { className: "card drop" }, files);
  const chooser = fileChooser(drop, { name: say("openRecording"), hint: say("dropHere"), accept: ".safetensors,.regard", onfile: send });
  drop.append(chooser.element, make("p", { className: "note", textContent: say("noRecording") }));
  element.append(drop, card);
  const panel = attentionPanel(card, { state, language, report });

  function list() {
    files.replaceChildren(...server.files.map((name) => {
      const one = button(name, () => {
        state.set({ file: name, site: -1, head: -1, pick: "", look: "" });
        served(name);
      }, { className: "hypothesis" });
      one.setAttribute("aria-pressed", String(name === state.get("file")));
      return one;
    }));
    files.hidden = !server.files.length;
  }

  async function served(name) {
    list();
    await answered(postJson(`files/${encodeURIComponent(name)}`, {}), name);
  }

  async function send(file) {
    const error = tooLarge(file, server.limits.upload, `regard serve ${file.name}`);
    if (error) return report(error);
    state.set({ file: "", site: -1, head: -1, pick: "", look: "" });
    list();
    return answered(postFile("recordings", file), file.name);
  }

  async function answered(answer, name) {
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
    await panel.show(recordingSites(recording));
  }

  list();
  if (state.get("file")) served(state.get("file"));
  else if (session.recording) show();
  return { update: () => panel.update(), destroy: () => chooser.destroy() };
}
