// A line of tokens, each as dark as the weight it got; one of them can be chosen.
//
//   const strip = createTokenStrip(element, {
//     tokens: ["…"], amounts: [0 … 1], weights: [exact],   // amounts are colors, weights titles; both may be left out
//     chosen: 2, name, dark, language, onchoose(place), onhover(place or undefined),
//   });

import { buildPalette, chooseTextColor, isDark, toCss } from "./colors.js";
import { make } from "./controls.js";
import { formatExactly, makeVisible } from "./labels.js";
import { createFormatter } from "./words.js";

export function createTokenStrip(element, options) {
  const state = { ...options };
  const strip = make("div", { className: "regard-strip", role: "group", dir: "auto" });
  element.append(strip);
  let tokens;

  function update(changes = {}) {
    Object.assign(state, changes);
    strip.setAttribute("aria-label", createFormatter(state.language)("strip", { name: state.name ?? "" }));
    if (tokens !== state.tokens) {
      tokens = state.tokens;
      strip.replaceChildren(...tokens.map(createTokenButton));
    }
    const colors = buildPalette(state.kind, state.dark ?? isDark());
    [...strip.children].forEach((button, place) => shadeToken(button, place, colors));
  }

  function createTokenButton(token, place) {
    const text = make("bdi", { textContent: makeVisible(token) });
    const button = make("button", { type: "button", className: "regard-token" }, text);
    button.addEventListener("click", () => state.onchoose?.(place));
    button.addEventListener("pointerenter", () => state.onhover?.(place));
    button.addEventListener("pointerleave", () => state.onhover?.(undefined));
    return button;
  }

  function shadeToken(button, place, colors) {
    const amount = state.amounts?.[place];
    button.style.background = amount === undefined ? "" : toCss(colors, amount);
    button.style.color = amount === undefined ? "" : chooseTextColor(colors, amount);
    button.setAttribute("aria-pressed", String(place === state.chosen));
    const weight = state.weights?.[place];
    button.title = weight === undefined ? "" : formatExactly(weight);
    if (weight === undefined) button.removeAttribute("aria-label");
    else button.setAttribute("aria-label", `${makeVisible(tokens[place])} ${formatExactly(weight)}`);
  }

  update();
  return { update, element: strip };
}
