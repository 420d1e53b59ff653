// Whether a notebook is light or dark: by what it says of itself, else by the paper that the output lies on.

/** Sets `data-theme` of the host now and whenever the notebook changes: { isDark() }. */
export function createHostTheme(host, onchange) {
  const show = () => {
    const theme = findDark(host) ? "dark" : "light";
    if (host.dataset.theme === theme) return;
    host.dataset.theme = theme;
    onchange();
  };
  const watch = new MutationObserver(show);
  for (const element of [document.documentElement, document.body]) watch.observe(element, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
  return { isDark: () => host.dataset.theme === "dark" };
}

function findDark(host) {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false"; // JupyterLab, Notebook 7, nbconvert
  if (vscodeThemeKind) return !vscodeThemeKind.includes("light");
  for (let element = host; element; element = element.parentElement) {
    const [red, green, blue, opaque = 1] = (getComputedStyle(element).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
    if (opaque > 0.5 && blue !== undefined) return 0.3 * red + 0.59 * green + 0.11 * blue < 110;
  }
  return false; // paper is white unless somebody says so
}
