// A color for each head: click to show or hide its lines, double click to see it alone, point at it to isolate it.

import { chooseHeadColors } from "./colors.js";
import { createButton, make } from "./controls.js";

export function createSwatches(onchange, onisolate) {
  const element = make("div", { className: "regard-swatches", role: "group" });
  let built;
  let shown = [];

  function show({ count, heads, say, dark }) {
    shown = heads;
    element.hidden = count < 2;
    element.setAttribute("aria-label", say("headName"));
    const name = [count, say("every"), dark].join();
    if (built !== name) build(count, say, chooseHeadColors(dark));
    built = name;
    for (const [head, button] of [...element.children].slice(0, count).entries()) button.setAttribute("aria-pressed", String(shown.includes(head)));
  }

  function build(count, say, colors) {
    const heads = Array.from({ length: count }, (_, head) => head);
    const all = createButton(say("every"), () => onchange(heads.join()), { className: "regard-plain" });
    const none = createButton(say("noneOfThem"), () => onchange("none"), { className: "regard-plain" });
    element.replaceChildren(...heads.map((head) => createSwatch(head, colors[head % colors.length], say)), all, none);
  }

  function createSwatch(head, { color, dashed }, say) {
    const name = say("head", { head });
    const button = createButton(String(head), () => toggle(head), { className: "regard-swatch", title: name, ariaLabel: name });
    button.style.setProperty("--head", color);
    button.classList.toggle("dashed", Boolean(dashed));
    button.addEventListener("dblclick", () => onchange(String(head)));
    button.addEventListener("pointerenter", () => onisolate(shown.includes(head) ? head : undefined));
    button.addEventListener("pointerleave", () => onisolate(undefined));
    return button;
  }

  function toggle(head) {
    const heads = shown.includes(head) ? shown.filter((one) => one !== head) : [...shown, head];
    onchange(heads.filter((one) => one >= 0).sort((one, other) => one - other).join() || "none");
  }

  return { element, show };
}
