// A file, chosen with a button, by pointer or keyboard, or dropped anywhere on the page.

import { createButton, make } from "../controls.js";

/** { element, destroy() }; `onfile(file)` gets one file, `place` shows where it may be dropped. */
export function createFileChooser(place, { name, hint, accept, onfile }) {
  const input = make("input", { type: "file", accept, className: "outside", tabIndex: -1, ariaLabel: name });
  input.addEventListener("change", () => {
    if (input.files[0]) onfile(input.files[0]);
    input.value = ""; // the same file may be chosen again
  });
  const listeners = {
    dragover: (event) => { event.preventDefault(); place.classList.add("over"); },
    dragleave: () => place.classList.remove("over"),
    drop: (event) => {
      event.preventDefault();
      place.classList.remove("over");
      if (event.dataTransfer.files[0]) onfile(event.dataTransfer.files[0]);
    },
  };
  for (const [kind, listener] of Object.entries(listeners)) window.addEventListener(kind, listener);
  return {
    element: make("p", { className: "chooser" }, createButton(name, () => input.click(), { className: "primary" }), input, make("span", { textContent: hint })),
    destroy() {
      for (const [kind, listener] of Object.entries(listeners)) window.removeEventListener(kind, listener);
    },
  };
}

/** The sentence for a file that is too large to be sent; undefined if it is not. */
export function findSizeError(file, most, fix, say) {
  if (file.size <= most) return undefined;
  return new Error(say("largeFile", { size: file.size.toLocaleString(), most: most.toLocaleString(), fix }));
}
