// Labelled controls, each a plain element of HTML that a keyboard and a screen reader know.

import { colorTable } from "./tiles.js";

/** An element of HTML with these properties, `role` and `ariaLabel` among them. */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** An element of SVG with these attributes. */
export function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Says to screen readers, style sheets and tests whether an element is about to change. */
export function setBusy(element, busy) {
  element.setAttribute("aria-busy", String(busy));
}

/** A list to choose from: { element, set(options, chosen), label(text) }. Options are [value, text]. */
export function createChoice(onchange) {
  const [name, list] = [make("span"), make("select")];
  list.addEventListener("change", () => onchange(list.value));
  return {
    element: make("label", { className: "regard-control" }, name, list),
    list,
    set(options, chosen) {
      const same = options.length === list.length && options.every(([, text], place) => list.options[place].text === text);
      if (!same) list.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
      list.value = String(chosen);
    },
    label(text) {
      name.textContent = text;
      list.setAttribute("aria-label", text); // the label's own text would have every option in it
    },
  };
}

/** A number from 0 to 1: { element, set(value), label(text) }. */
export function createSlider(onchange) {
  const [name, shown] = [make("span"), make("span", { className: "regard-number" })];
  const range = make("input", { type: "range", min: "0", max: "1", step: "0.01", value: "0" });
  range.addEventListener("input", () => onchange(Number(range.value)));
  return {
    element: make("label", { className: "regard-control" }, name, range, shown),
    set(value) {
      range.value = String(value);
      shown.textContent = value.toFixed(2);
    },
    label(text) {
      name.textContent = text;
      range.setAttribute("aria-label", text); // the label's own text would have the number in it
    },
  };
}

/** Which color means what: { element, set(paint, least, most, middle) }; paints as in tiles.js. */
export function createLegend() {
  const [low, high, center] = [make("span"), make("span"), make("span", { className: "regard-center" })];
  const bar = make("canvas", { width: 256, height: 1 });
  const element = make("span", { className: "regard-legend", role: "img" }, low, make("span", { className: "regard-bar" }, bar, center), high);
  return {
    element,
    set(paint, least, most, middle = "") {
      [low.textContent, high.textContent, center.textContent] = [least, most, middle];
      const values = Float32Array.from({ length: 256 }, (_, step) => (paint.difference ? step / 127.5 - 1 : step / 255));
      colorTable(bar, { values, rows: 1, columns: 256 }, { ...paint, scale: "none" }, 1, () => 1);
      element.setAttribute("aria-label", `${least} – ${most}`);
    },
  };
}

/** Buttons of which one is pressed: { element, set(options, chosen), label(text) }. */
export function createToggle(onchange) {
  const group = make("div", { className: "regard-toggle", role: "group" });
  return {
    element: group,
    set(options, chosen) {
      group.replaceChildren(...options.map(([value, text]) => {
        const button = make("button", { type: "button", textContent: text, ariaPressed: String(value === chosen) });
        button.addEventListener("click", () => {
          onchange(value);
          [...group.children][options.findIndex(([other]) => other === value)]?.focus();
        });
        return button;
      }));
    },
    label: (text) => group.setAttribute("aria-label", text),
  };
}

/** Yes or no: { element, set(checked), label(text) }. */
export function createSwitch(onchange) {
  const [name, box] = [make("span"), make("input", { type: "checkbox" })];
  box.addEventListener("change", () => onchange(box.checked));
  return {
    element: make("label", { className: "regard-control" }, box, name),
    set(checked) { box.checked = checked; },
    label(text) { name.textContent = text; },
  };
}

/** A button with a text or a sign. */
export function createButton(text, onclick, properties = {}) {
  const made = make("button", { type: "button", textContent: text, ...properties });
  made.addEventListener("click", onclick);
  return made;
}
