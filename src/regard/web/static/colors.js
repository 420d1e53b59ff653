// Colors whose lightness rises or falls all the way, so that they survive grey printing and color blindness.
// regard.inspect.draw.colors has the same formulas; a test compares the two.

const PALETTES = {
  // [lightness from, to], [hue from, to] in degrees, [chroma at the ends, in the middle]
  light: { lightness: [1.0, 0.3], hue: [225, 268], chroma: [0.0, 0.14, 0.1] },
  dark: { lightness: [0.23, 0.96], hue: [268, 100], chroma: [0.015, 0.13, 0.09] },
};
// Nothing has the color of the paper; less is bluer and darker than more, which also grey printing shows.
const DIFFERENCES = {
  light: { lightness: [0.36, 1, 0.6], hues: [262, 50], chroma: 0.16 },
  dark: { lightness: [0.6, 0.209, 0.86], hues: [255, 75], chroma: 0.15 },
};
const STEPS = 256;

/** 256 colors, red, green and blue of each in turn. `kind`: "weights" from 0 to 1, or "difference" from −1 to 1. */
export function buildPalette(kind = "weights", dark = false) {
  const colors = new Uint8ClampedArray(STEPS * 3);
  for (let step = 0; step < STEPS; step += 1) {
    const amount = step / (STEPS - 1);
    const color = kind === "difference" ? colorDifference(amount, dark ? DIFFERENCES.dark : DIFFERENCES.light) : colorWeight(amount, dark ? PALETTES.dark : PALETTES.light);
    colors.set(color, step * 3);
  }
  return colors;
}

function colorWeight(amount, { lightness, hue, chroma }) {
  const [start, middle, end] = chroma;
  const bend = amount < 0.5 ? mix(start, middle, amount * 2) : mix(middle, end, amount * 2 - 1);
  return toRgb(mix(...lightness, amount), bend, mix(...hue, amount));
}

function colorDifference(amount, { lightness, hues, chroma }) {
  const [less, none, more] = lightness;
  const size = Math.abs(amount * 2 - 1);
  return toRgb(mix(none, amount < 0.5 ? less : more, size), chroma * size, amount < 0.5 ? hues[0] : hues[1]);
}

function mix(from, to, amount) {
  return from + (to - from) * amount;
}

// From lightness, chroma and hue of OKLab (Ottosson 2020) to bytes of sRGB; chroma shrinks until the color exists.
function toRgb(lightness, chroma, hue) {
  for (let left = chroma; ; left = Math.max(0, left - 0.004)) {
    const linear = toLinearRgb(lightness, left, (hue * Math.PI) / 180);
    if (left === 0 || linear.every((part) => part >= -1e-4 && part <= 1.0001)) {
      return linear.map((part) => Math.round(255 * encodeSrgb(Math.min(1, Math.max(0, part)))));
    }
  }
}

function toLinearRgb(lightness, chroma, angle) {
  const [a, b] = [chroma * Math.cos(angle), chroma * Math.sin(angle)];
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short,
  ];
}

function encodeSrgb(linear) {
  return linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
}

/** A number of 0 … 1 as a color of CSS. */
export function toCss(colors, amount) {
  const place = 3 * Math.round(Math.min(1, Math.max(0, amount)) * (STEPS - 1));
  return `rgb(${colors[place]} ${colors[place + 1]} ${colors[place + 2]})`;
}

// Okabe & Ito 2008, told apart by all eyes; the ones that are too near to the paper are made darker or lighter.
const HEADS = {
  light: ["#0072b2", "#d55e00", "#00875f", "#a8498a", "#8a6d00", "#1f8fc4", "#5a5a5a", "#b3261e"],
  dark: ["#56b4e9", "#e69f00", "#2fc49a", "#e08fc0", "#f0e442", "#9ec8ff", "#c8c8c8", "#ff8a70"],
};

/** A color for each of sixteen heads; the second eight are dashed: [{ color, dashed }]. */
export function chooseHeadColors(dark) {
  const colors = dark ? HEADS.dark : HEADS.light;
  return [false, true].flatMap((dashed) => colors.map((color) => ({ color, dashed })));
}

/** Black or white, whichever can be read on that color. */
export function chooseTextColor(colors, amount) {
  const place = 3 * Math.round(Math.min(1, Math.max(0, amount)) * (STEPS - 1));
  const parts = [0, 1, 2].map((part) => (colors[place + part] / 255) ** 2.2);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] > 0.18 ? "#000" : "#fff";
}

/** Whether the page is dark: by its own `data-theme`, else by what the reader's system prefers. */
export function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
