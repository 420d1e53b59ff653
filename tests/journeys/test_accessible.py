"""Every state of the page, by axe's rules, and measured: nothing jumps, and nothing is wider than the screen."""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, NamedTuple

import pytest
from serving import Server, open_context, settle
from view_runs import RUNS, make_run, make_view_runs

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RUN_AXE = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map(({ html }) => html.slice(0, 160))]);
}"""
COUNT_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts.push(entry);
}).observe({ type: "layout-shift", buffered: true });
"""
READ_SHIFTS = """() => ({ total: window.shifts.reduce((total, { value }) => total + value, 0),
  by: window.shifts.flatMap(({ value, sources }) => sources.map(({ node, previousRect, currentRect }) =>
    `${value.toFixed(4)} ${node?.className || node?.nodeName} ${previousRect.y | 0} → ${currentRect.y | 0}`)) })"""


class State(NamedTuple):
    """An address, what is there when it is drawn, and what is clicked or hovered then."""

    address: str
    ready: str
    click: str = ""
    hover: str = ""
    then: str = "body"


TEXT = "view=translate&run=numbers&text=one+two+three"
STATES = {
    "empty": State("view=recording", ".recordings button"),
    "translation": State(TEXT, ".regard-grid button"),
    "map": State(f"{TEXT}&pick=r0", ".regard-chip", hover=".regard-chip"),
    "cell": State(f"{TEXT}&head=1&pick=r0c1", ".regard-terms", hover=".regard-heatmap-canvas"),
    "cell of a mean": State(f"{TEXT}&head=-1&pick=r0c1", ".regard-made .note"),
    "lines": State(f"{TEXT}&drawing=lines", ".regard-arcs path", hover=".regard-swatch"),
    "model": State(f"{TEXT}&drawing=heads", ".part-model canvas", hover=".part-model .regard-grid button"),
    "one head of the model": State(
        f"{TEXT}&drawing=heads",
        ".part-model canvas",
        click=".part-model .regard-grid button >> nth=3",
        then=".part-map canvas",
    ),
    "tree": State(TEXT, ".tree button", hover=".tree button"),
    "options": State(TEXT, ".regard-grid button", click="summary >> nth=0"),
    "image": State("view=ask&run=scenes&example=yes", ".regard-frame", hover=".regard-overlay >> nth=0"),
    "sound": State("view=ask&run=tones&example=yes", ".regard-spectrogram"),
    "reading": State("view=ask&run=facts&example=yes", ".passage mark"),
    "memory": State("view=ask&run=stories&example=yes", ".facts td"),
    "questions": State("view=ask&run=looks&example=yes", ".regard-frame", hover=".regard-frame >> nth=0"),
    "digits": State("view=ask&run=digits&example=yes", ".regard-frame", hover=".regard-frame >> nth=0"),
    "letters": State("view=ask&run=letters&example=yes", ".part-map canvas", hover=".part-map canvas"),
    "regression": State("view=ask&run=curve&example=yes", ".part-map canvas", hover=".regard-token >> nth=1"),
    "next vector": State("view=ask&run=vectors&example=yes&drawing=lines", ".regard-arcs path", hover=".regard-arcs"),
    "several runs": State("view=training&runs=numbers/other", "main svg", hover="main svg"),
    "beyond bounds": State(f"{TEXT}&beam=9999", ".note.changed:has-text('16')"),
    "training": State("view=training&run=numbers", "main svg", hover="main svg"),
    "comparison": State(f"{TEXT}&with=other", ".triple canvas"),
    "error": State("view=recording&file=nothing.safetensors", "[role=alert]:not([hidden])"),
    "recording": State("view=recording&file=a.safetensors", ".part-map canvas", hover=".part-map canvas"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("states")
    make_view_runs(folder)
    make_run(folder / "other", "transformer")
    server = Server(folder, *RUNS, "other", "a.safetensors")
    yield server
    server.stop()


@pytest.fixture(scope="module", params=["en, light, 1280", "zh, dark, 390"])
def setting(request: pytest.FixtureRequest, browser: Any, server: Server) -> Iterator[tuple[Any, str]]:
    """A page in a language, in light or dark, and of a width; and the rest of its address."""
    language, theme, width = request.param.split(", ")
    size = {"width": int(width), "height": 900}
    context = open_context(browser, viewport=size, color_scheme=theme)
    yield context.new_page(), f"&lang={language}&theme={theme}"
    context.close()


def enter(page: Any, server: Server, state: State, more: str = "") -> None:
    """Open a state and wait until it is drawn."""
    page.goto("about:blank")
    page.goto(f"{server.url}#{state.address}{more}")
    page.wait_for_selector(state.ready)
    if state.click:
        page.click(state.click)
    if state.hover:
        page.hover(state.hover)
    page.wait_for_selector(state.then)
    settle(page)


@pytest.mark.parametrize("name", STATES)
def test_axe_finds_nothing(setting: tuple[Any, str], server: Server, name: str) -> None:
    page, more = setting
    enter(page, server, STATES[name], more)
    page.evaluate(AXE)
    found = page.evaluate(RUN_AXE)
    assert found == [], json.dumps(found, indent=1, ensure_ascii=False)


@pytest.mark.parametrize("width", [390, 1440, 1920])
def test_nothing_jumps_and_nothing_is_wider_than_the_screen(browser: Any, server: Server, width: int) -> None:
    context = open_context(browser, viewport={"width": width, "height": 900})
    context.add_init_script(COUNT_SHIFTS)
    page = context.new_page()
    wrong = {}
    for name, state in STATES.items():
        if state.click:
            continue
        enter(page, server, state)
        settle(page, frames=20)  # what comes late must not push anything either
        shifts = page.evaluate(READ_SHIFTS)
        wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        if shifts["total"] > 0.02 or wide > 0:
            wrong[name] = (round(shifts["total"], 4), wide, shifts["by"][:8])
    context.close()
    assert wrong == {}, json.dumps(wrong, indent=1, ensure_ascii=False)
