// Three short hints beside the example that runs by itself on a first visit.

import { createButton, make } from "../controls.js";
import { createFormatter } from "../words.js";

/** { element, show(), hide() }; `session` remembers that they were closed. */
export function createHints(session, language) {
  const say = createFormatter(language);
  const list = make("ol", {}, ...["hintType", "hintWord", "hintHead"].map((name) => make("li", { textContent: say(name) })));
  const element = make("aside", { className: "hints", ariaLabel: say("hints"), hidden: !session.hinting }, list,
    createButton("×", () => hide(), { ariaLabel: say("close") }));

  function hide() {
    session.hinting = false;
    element.hidden = true;
  }

  return {
    element,
    hide,
    show() {
      session.hinting = true;
      element.hidden = false;
    },
  };
}
