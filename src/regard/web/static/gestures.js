// Pointer, wheel, touch and keyboard on a canvas, as moves of a view: hover, choose, pan, zoom.

const CLICK = 4; // pixels that a pointer may tremble and still click

/** Listens to `canvas`; `act` has hover(x, y), leave(), choose(x, y), pan(dx, dy), zoom(factor, x, y), key(name). */
export function listen(canvas, act) {
  const fingers = new Map();
  let travelled = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    if (fingers.size === 1) travelled = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) return act.hover(...now);
    if (fingers.size === 2) pinch(event.pointerId, before, now);
    else {
      travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (travelled > CLICK) act.pan(now[0] - before[0], now[1] - before[1]);
      act.hover(...now);
    }
    fingers.set(event.pointerId, now);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (fingers.size === 1 && travelled <= CLICK) act.choose(...place(event));
    fingers.delete(event.pointerId);
  });
  canvas.addEventListener("pointercancel", (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointerleave", () => act.leave());
  canvas.addEventListener("dblclick", (event) => act.zoom(2, ...place(event)));
  // The wheel scrolls the page until the map has been clicked or Ctrl is held, so that nobody is caught in it.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && canvas.getRootNode().activeElement !== canvas) return;
    event.preventDefault();
    act.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...place(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (act.key(event.key, event.shiftKey)) event.preventDefault();
  });

  function pinch(moved, before, now) {
    travelled = Infinity;
    const other = [...fingers].find(([finger]) => finger !== moved)[1];
    const apart = (finger) => Math.hypot(finger[0] - other[0], finger[1] - other[1]);
    act.zoom(apart(now) / Math.max(1, apart(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  }
}
