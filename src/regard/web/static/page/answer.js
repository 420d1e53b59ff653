// A translation, and behind one line that opens, the other hypotheses.
//
//   const answer = createAnswer(element, { language, onchoose(place) });
//   answer.wait(source); answer.showText(text);                                 // while a search goes on
//   answer.showHypotheses(hypotheses, place, notes);

import { createButton, make } from "../controls.js";
import { formatScore } from "../labels.js";
import { createFormatter } from "../words.js";

export function createAnswer(element, { language, onchoose }) {
  const say = createFormatter(language);
  const text = make("div", { className: "answer", ariaLive: "polite" });
  const summary = make("summary");
  const list = make("div", { className: "hypotheses", role: "group", ariaLabel: say("hypotheses") });
  const others = make("details", { className: "others", hidden: true }, summary, list);
  element.append(text, others);

  function showText(answer, notes = []) {
    text.replaceChildren(make("p", { className: "answer-text", dir: "auto", textContent: answer || "∅" }),
      ...notes.map((note) => make("p", { className: "note", dir: "auto", textContent: note })));
  }

  function showHypotheses(hypotheses, place, notes) {
    text.style.maxHeight = "";
    showText(hypotheses[place].text, notes);
    const score = say("score", { score: formatScore(hypotheses[place].score) });
    others.hidden = hypotheses.length < 2;
    summary.textContent = say("hypothesisOf", { place: place + 1, count: hypotheses.length, score });
    list.replaceChildren(...hypotheses.map((one, other) => createHypothesis(one, other === place, () => onchoose(other))));
  }

  function createHypothesis(one, pressed, choose) {
    const button = createButton("", choose, { className: "hypothesis", ariaPressed: String(pressed) });
    button.append(make("span", { className: "score", textContent: say("score", { score: formatScore(one.score) }) }), make("bdi", { textContent: one.text || "∅" }));
    return button;
  }

  return {
    showText,
    showHypotheses,
    /** Room for a translation that is about as long as its source, so that what stands below need not move. */
    wait(source) {
      text.style.minHeight = text.style.maxHeight = "";
      text.replaceChildren(make("p", { className: "answer-text", textContent: source, ariaHidden: "true" }));
      text.style.minHeight = text.style.maxHeight = `${text.offsetHeight}px`; // until the search has ended: what is longer on the way is cut
      text.replaceChildren(make("p", { className: "note", textContent: say("working") }));
      others.hidden = true;
    },
  };
}
