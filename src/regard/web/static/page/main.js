// The page: what is on it, in which language and light, and what to do when the server is gone.

import "./words.js";
import { isDark } from "../colors.js";
import { createButton, createToggle, make } from "../controls.js";
import { chooseLanguage, createFormatter } from "../words.js";
import { getJson, onConnection, onSuccess, pause, takeToken, watchServer } from "./api.js";
import { createAskView, findAskable } from "./ask.js";
import { createRecordingView } from "./recordings.js";
import { createHashState } from "./state.js";
import { createTrainingView } from "./training.js";
import { createTranslateView, findTranslators } from "./translate.js";

const VIEWS = { translate: createTranslateView, ask: createAskView, recording: createRecordingView, training: createTrainingView };

takeToken();
const state = createHashState();
const session = { redraw: render }; // what was answered, kept while language and view change
const content = make("main", { id: "content", tabIndex: -1 });
const header = make("header", { className: "top" });
const banner = make("p", { className: "banner", hidden: true, role: "status" });
const trouble = make("div", { className: "trouble", hidden: true, role: "alert" });
let view;
let server;
let since = 0; // when the trouble was shown

function getLanguage() {
  return chooseLanguage(state.get("lang") || undefined);
}

function report(error) {
  if (error.status === 0) return; // the banner says so
  const say = createFormatter(getLanguage());
  const close = createButton("×", () => { trouble.hidden = true; }, { ariaLabel: say("close") });
  trouble.replaceChildren(make("span", { textContent: error.message }), close);
  trouble.hidden = false;
  since = performance.now();
}

onSuccess((begun) => { if (begun > since) trouble.hidden = true; });

/** Language and light of the whole page: known from the address, before the server answers. */
function renderRoot() {
  const theme = state.get("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  document.documentElement.lang = getLanguage();
}

function render() {
  renderRoot();
  renderHeader();
  view?.destroy();
  content.replaceChildren();
  trouble.hidden = true;
  view = VIEWS[chooseView()](content, { state, language: getLanguage(), server, report, session });
}

/** Where to begin: with what can be done with what is served. */
function chooseView() {
  if (state.get("view") in VIEWS) return state.get("view");
  if (!server || findTranslators(server).length) return "translate";
  if (findAskable(server).length) return "ask";
  if (server.files.length) return "recording";
  return server.runs.length ? "training" : "translate";
}

function renderHeader() {
  const say = createFormatter(getLanguage());
  const tabs = make("nav", { ariaLabel: say("views") });
  for (const name of Object.keys(VIEWS)) {
    if (name === "ask" && !(server && findAskable(server).length)) continue;
    const tab = createButton(say(`${name}View`), () => { state.go({ view: name, site: -1, head: -1, pick: "", look: "" }); render(); });
    if (name === chooseView()) tab.setAttribute("aria-current", "page");
    tabs.append(tab);
  }
  const languages = createToggle((value) => { state.set({ lang: value }); render(); header.querySelector(".tools button[aria-pressed=true]")?.focus(); });
  languages.label(say("language"));
  languages.set([["en", "English"], ["zh", "中文"]], getLanguage());
  const themes = createToggle((value) => { state.set({ theme: value }); document.documentElement.dataset.theme = value; renderHeader(); view.update(); });
  themes.label(say("theme"));
  themes.set([["light", "☀"], ["dark", "☾"]], isDark() ? "dark" : "light");
  const link = createButton(say("copyLink"), () => copy(link, say), { title: say("linked") });
  const skip = make("a", { className: "skip", href: "#content", textContent: say("skip") });
  skip.addEventListener("click", (event) => { event.preventDefault(); content.focus(); });
  const logo = make("img", { src: "static/icon.svg", alt: "", width: 24, height: 24 });
  header.replaceChildren(skip, make("h1", {}, logo, "regard"), tabs,
    make("div", { className: "tools" }, link, languages.element, themes.element));
}

async function copy(link, say) {
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  link.textContent = say("copied");
  await pause(1500);
  link.textContent = say("copyLink");
}

onConnection(async (gone) => {
  const say = createFormatter(getLanguage());
  banner.hidden = false;
  banner.classList.toggle("gone", gone);
  banner.textContent = say(gone ? "lost" : "back");
  if (gone) return;
  trouble.hidden = true;
  server = await getJson("state").catch(() => server);
  delete session.recording; // a new server knows none of the old names
  delete session.answer;
  if (session.asked) delete session.asked.answer; // it is asked again
  if (state.get("view") !== "training") render(); // curves go on by themselves
  await pause(2500);
  if (!banner.classList.contains("gone")) banner.hidden = true;
});

async function start() {
  document.body.append(header, banner, trouble, content);
  renderRoot();
  renderHeader();
  while (!server) {
    server = await getJson("state").catch((error) => { report(error); return undefined; });
    if (!server) await pause(1500);
  }
  render();
  state.on(render);
  watchServer();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { renderHeader(); view.update(); });
  window.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName)) return;
    event.preventDefault();
    document.querySelector("textarea")?.focus();
  });
}

start();
