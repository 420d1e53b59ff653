// Small pictures of every head, layer by layer or in the order of a measure; one of them is chosen.
//
//   const grid = createHeadGrid(element, {
//     sites: [{ name, short, count, kind, heads, mean, measures, load() }],   // a row each; `heads` and `mean` are sources,
//                                                  // or undefined until load() has been called and update() comes
//     chosen: { site: 0, head: 1 },                // head −1 is the mean
//     pixels, badges, order,                       // size of a picture; marks of patterns; the measure to sort by
//     scale, threshold, dark, language,
//     onchoose({ site, head }, entered),           // entered: by a click or Enter, not by an arrow key
//   });

import { createButton, make, setBusy } from "./controls.js";
import { createPaint, drawThumbnail } from "./tiles.js";
import { createFormatter } from "./words.js";

const CLEAR = 0.5; // of a head's weight follows a pattern that it is marked with
const MARKS = { previous: "←", next: "→", first: "⇤", diagonal: "╲", uniform: "▦" };
const PART = 20; // milliseconds of a frame that small pictures are painted in
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export function createHeadGrid(element, options) {
  return new HeadGrid(element, options);
}

class HeadGrid {
  constructor(element, options) {
    this.state = { order: "", badges: false };
    this.table = make("div", { className: "regard-grid", role: "grid" });
    element.append(this.table);
    this.seen = new IntersectionObserver((rows) => {
      for (const { isIntersecting, target } of rows) if (isIntersecting) for (const site of target.sites) site.load();
    }, { rootMargin: "200px" });
    this.table.addEventListener("keydown", (event) => this.handleKey(event));
    this.update(options);
  }

  update(changes = {}) {
    Object.assign(this.state, changes);
    const { sites, order, language, pixels } = this.state;
    const shown = [order, language, this.state.badges].join();
    if (this.sites !== sites || this.shown !== shown) this.build();
    Object.assign(this, { sites, shown });
    this.table.style.setProperty("--thumb", `${pixels}px`);
    this.paint();
    this.scrollToChosen();
  }

  /** The chosen one in sight, without moving the page. */
  scrollToChosen() {
    const [table, { chosen }] = [this.table, this.state];
    const name = `${chosen.site}/${chosen.head}`;
    const button = this.buttons.get(name);
    if (!button || this.scrolled === name) return;
    this.scrolled = name;
    const [box, frame] = [button.getBoundingClientRect(), table.getBoundingClientRect()];
    const outside = (low, high, from, to) => (low < from ? low - from : high > to ? high - to : 0);
    table.scrollTop += outside(box.top - 24, box.bottom + 8, frame.top, frame.bottom);
    table.scrollLeft += outside(box.left - 90, box.right + 8, frame.left, frame.right);
  }

  paint() {
    const { chosen } = this.state;
    const held = this.buttons.has(`${chosen.site}/${chosen.head}`) ? `${chosen.site}/${chosen.head}` : this.buttons.keys().next().value;
    for (const [name, button] of this.buttons) {
      const pressed = name === `${chosen.site}/${chosen.head}`;
      button.tabIndex = name === held ? 0 : -1;
      if (button.ariaPressed !== String(pressed)) button.ariaPressed = String(pressed);
    }
    this.paintSome();
  }

  /** Paints what is not painted yet, for part of a frame, and goes on in the next: hundreds of heads stop nobody. */
  paintSome() {
    const until = performance.now() + PART;
    const { sites, dark, pixels } = this.state;
    const paints = new Map(sites.map(({ kind }) => [kind, createPaint({ ...this.state, kind, dark })]));
    for (const button of this.buttons.values()) {
      const site = sites[button.site];
      const source = button.head < 0 ? site.mean : site.heads?.[button.head];
      const paint = paints.get(site.kind);
      if (!source || (button.painted === paint.name && button.source === source)) continue;
      if (performance.now() > until) {
        this.painting ??= requestAnimationFrame(() => { this.painting = undefined; this.paintSome(); });
        setBusy(this.table, true);
        return;
      }
      drawThumbnail(button.firstChild, source, paint, Math.max(32, pixels));
      Object.assign(button, { painted: paint.name, source });
    }
    setBusy(this.table, false);
  }

  build() {
    const { sites, order, language } = this.state;
    this.say = createFormatter(language);
    this.seen.disconnect();
    this.buttons = new Map();
    this.table.classList.toggle("ordered", Boolean(order));
    this.table.replaceChildren(...(order ? this.buildOrdered() : [this.buildNumbers(), ...sites.map((site, place) => this.buildRow(site, place))]));
    this.table.setAttribute("aria-label", this.say("heads"));
  }

  /** The numbers of the heads, above. */
  buildNumbers() {
    const { sites } = this.state;
    const most = Math.max(...sites.map(({ count }) => count));
    const cell = (text, title) => make("span", { className: "regard-grid-number", role: "columnheader", textContent: text, title });
    const numbers = Array.from({ length: most }, (_, head) => cell(String(head), this.say("head", { head })));
    if (most > 1) numbers.unshift(cell("Ø", this.say("mean")));
    const corner = make("span", { className: "regard-grid-name", role: "columnheader", textContent: this.say("layer"), title: this.say("fromZero") });
    return make("div", { className: "regard-grid-row regard-grid-numbers", role: "row", hidden: most < 2 }, corner, ...numbers);
  }

  buildRow(site, place) {
    const name = make("span", { className: "regard-grid-name", textContent: site.short, title: site.name, role: "rowheader" });
    const heads = Array.from({ length: site.count }, (_, head) => this.buildThumbnail(place, head));
    if (site.count > 1) heads.unshift(this.buildThumbnail(place, -1));
    const row = make("div", { className: "regard-grid-row", role: "row", sites: [site] }, name, ...heads);
    this.seen.observe(row);
    return row;
  }

  buildOrdered() {
    const { sites, order } = this.state;
    const all = sites.flatMap(({ measures }, site) => measures[order].map((value, head) => ({ site, head, value })));
    all.sort((one, other) => other.value - one.value);
    const cells = all.map(({ site, head, value }) => this.buildThumbnail(site, head, `${sites[site].short}·${head} ${value.toFixed(2)}`));
    const row = make("div", { className: "regard-grid-row", role: "row", sites }, ...cells);
    this.seen.observe(row);
    return [row];
  }

  buildThumbnail(site, head, caption) {
    const { sites, badges } = this.state;
    const title = head < 0 ? this.say("mean") : this.say("head", { head });
    const [mark, follows] = head < 0 ? [] : this.findMark(sites[site].measures, head);
    const ariaLabel = this.say("headOf", { site: sites[site].name, head: title });
    const button = createButton("", () => this.choose({ site, head }, true), { site, head, title: [ariaLabel, follows].filter(Boolean).join(": "), ariaLabel });
    button.append(make("canvas"));
    if (mark && badges) button.append(make("span", { className: "regard-mark", textContent: mark, ariaHidden: "true" }));
    this.buttons.set(`${site}/${head}`, button);
    const cell = make("span", { className: "regard-grid-cell", role: "gridcell" }, button);
    if (caption) cell.append(make("span", { className: "regard-caption", textContent: caption }));
    return cell;
  }

  /** The sign of the pattern that a head follows, and its name with how much of the weight does. */
  findMark(measures, head) {
    const scores = Object.keys(MARKS).map((name) => [name, measures?.[name]?.[head] ?? 0]);
    const [name, score] = scores.reduce((best, one) => (one[1] > best[1] ? one : best));
    return score >= CLEAR ? [MARKS[name], `${this.say(name)} ${score.toFixed(2)}`] : [];
  }

  handleKey(event) {
    const [down, right] = MOVES[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const names = [...this.buttons.keys()];
    const { sites, chosen, order } = this.state;
    if (order) {
      const next = names[Math.min(names.length - 1, Math.max(0, names.indexOf(`${chosen.site}/${chosen.head}`) + down + right))];
      const [site, head] = next.split("/").map(Number);
      this.choose({ site, head }, false);
    } else {
      const site = Math.min(sites.length - 1, Math.max(0, chosen.site + down));
      const { count } = sites[site];
      this.choose({ site, head: Math.min(count - 1, Math.max(count > 1 ? -1 : 0, chosen.head + right)) }, false);
    }
    this.buttons.get(`${this.state.chosen.site}/${this.state.chosen.head}`)?.focus();
  }

  choose(chosen, entered) {
    this.update({ chosen });
    this.state.onchoose?.(chosen, entered);
  }
}
