"""Journeys through the views and their states, with models that were never trained: one server, one page."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from serving import PageVisit, Server, open_context, settle
from view_runs import RUNS, make_run, make_view_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    make_view_runs(folder)
    make_run(folder / "other", "bahdanau")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    server = Server(folder, *RUNS, "other")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def visit(browser: Any, server: Server) -> Iterator[PageVisit]:
    """One page for all of these tests; each begins with an address of its own."""
    context = open_context(browser)
    one = PageVisit(context.new_page(), server)
    yield one
    context.close()


@pytest.fixture
def page(visit: PageVisit) -> Iterator[Any]:
    visit.page.goto("about:blank")
    visit.troubles.clear()
    yield visit.page
    excused = ("400", "404", "ERR_ABORTED")  # a refusal that a test wants, and what was still loading when it left
    assert [trouble for trouble in visit.list_troubles() if not any(one in trouble for one in excused)] == []


def test_the_first_screen_is_alive_in_three_requests(visit: PageVisit, page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/api/")[2]))
    visit.open()
    page.wait_for_selector(".tree .node.ended")
    page.wait_for_selector(".regard-grid button")
    expect(page.locator(".hints li")).to_have_count(3)
    expect(page.locator("textarea")).not_to_have_value("")
    assert [one.split("/")[-1] for one in asked if one not in ("", "state", "alive")] == [
        "translate",
        "attention",
        "bundle",
    ]
    page.click(".hints button")
    expect(page.locator(".hints")).to_be_hidden()


def test_back_and_forward_walk_through_views(visit: PageVisit, page: Any) -> None:
    visit.open("text=one+two")
    page.wait_for_selector(".tree .node.ended")
    page.fill("textarea", "three")
    page.keyboard.press("Enter")
    page.wait_for_selector(".regard-grid button")
    for name in ("Recordings", "Training"):
        page.click(f"nav button:has-text('{name}')")
    current = page.locator("nav [aria-current]")
    page.go_back()
    expect(current).to_have_text("Recordings")
    page.go_back()
    expect(current).to_have_text("Translate")
    expect(page.locator("textarea")).to_have_value("three")
    page.go_back()
    expect(page.locator("textarea")).to_have_value("one two")
    page.go_forward()
    page.go_forward()
    expect(current).to_have_text("Recordings")


def test_a_file_that_was_opened_has_a_link_and_errors_go_when_the_next_thing_works(
    visit: PageVisit, page: Any, folder: Path
) -> None:
    visit.open("view=recording")
    page.set_input_files("input[type=file]", folder / "broken.safetensors")
    page.wait_for_selector(".trouble:has-text('fix:')")
    page.set_input_files("input[type=file]", folder / "a.safetensors")
    page.wait_for_selector("h2:has-text('a.safetensors')")
    expect(page.locator(".trouble")).to_be_hidden()
    link = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("h2:has-text('a.safetensors')")
    expect(page.locator(".part-queries button")).to_have_count(3)


def test_messages_are_in_the_language_of_the_page(visit: PageVisit, page: Any) -> None:
    visit.open("view=recording&file=none.safetensors&lang=zh")
    expect(page.get_by_role("alert")).to_contain_text(
        "记录：收到 'none.safetensors'，需要 (none) 之一；办法：从中选择一个"
    )
    visit.open("view=recording&file=none.safetensors&lang=en")
    expect(page.get_by_role("alert")).to_contain_text(
        "recording: got 'none.safetensors', expected one of (none); fix: choose"
    )


def test_what_is_cut_or_out_of_bounds_is_said(visit: PageVisit, page: Any) -> None:
    visit.open("beam=9999&text=one+two")
    page.wait_for_selector(".note:has-text('Beam: 9999 is not from 1 to 16; 16 is used.')")
    page.wait_for_selector(".tree .node.ended")
    page.fill("textarea", "one " * 600)
    page.wait_for_selector(".note:has-text('The text has 2,400 characters; the first 2,000 are used.')")
    page.click("summary:has-text('Options')")
    page.fill("label:has-text('Length penalty') input", "77")
    page.keyboard.press("Tab")
    page.wait_for_selector(".note:has-text('Length penalty: 77 is not from 0 to 5; 5 is used.')")


def test_an_example_fills_the_boxes_and_the_answer_is_marked_in_the_passage(visit: PageVisit, page: Any) -> None:
    visit.open("view=ask&run=facts")
    page.wait_for_selector(".passage mark")
    settle(page)
    expect(page.locator(".passage mark")).to_have_text(page.inner_text(".answer-text"))
    expect(page.locator("textarea[name=passage]")).to_have_value(page.inner_text(".passage"))
    expect(page.locator("[aria-label='Layer'] option")).to_have_count(2)
    page.fill("textarea[name=passage]", "Anna lives in Rome.")
    page.fill("textarea[name=question]", "where does Anna live?")
    page.keyboard.press("Enter")
    expect(page.locator(".passage")).to_have_text("Anna lives in Rome.")


def test_facts_are_not_cut(visit: PageVisit, page: Any) -> None:
    visit.open("view=ask&run=stories")
    expect(page.locator(".facts tbody tr").first).to_be_visible()
    settle(page)
    facts = page.locator(".facts tbody th").all_inner_texts()
    assert ". ".join(facts) in page.input_value("textarea[name=asked]")


def test_regions_and_words_find_each_other(visit: PageVisit, page: Any) -> None:
    visit.open("view=ask&run=scenes")
    heat = page.locator(".part-beside > .regard-overlay:not(.regard-original)")
    page.wait_for_selector(".regard-frame")
    settle(page)  # the picture is loaded
    draw = "(canvas) => canvas.toDataURL()"
    before, picture = (one.evaluate(draw) for one in (heat, page.locator(".regard-original")))
    heat.hover(position={"x": 10, "y": 10})
    expect(page.locator(".regard-heat [role=status]")).to_contain_text("region 0,0:")
    heat.click(position={"x": 10, "y": 10})
    expect(page.locator(".regard-frame small").first).to_have_text(re.compile(r"^\d\.\d\d$"))
    page.fill("[aria-label=Heat]", "0")
    page.mouse.move(0, 0)
    settle(page)
    assert heat.evaluate(draw) != before
    assert page.locator(".regard-original").evaluate(draw) == picture


def test_a_sound_is_played_on_the_axis_of_its_map(visit: PageVisit, page: Any) -> None:
    visit.open("view=ask&run=tones")
    page.wait_for_selector("audio")
    page.wait_for_function("() => document.querySelector('audio').duration > 0")
    box = page.locator(".regard-spectrogram").bounding_box()
    page.locator(".regard-spectrogram").click(position={"x": box["width"] / 2, "y": 20})
    expect(page.locator(".regard-cursor")).to_be_visible()
    page.wait_for_function("() => document.querySelector('audio').currentTime > 0")


ANSWERS = {
    "stories": (r"^\w+$", "正确答案：", "第 0 跳"),
    "digits": (r"^\d \([\d.]+ %\)$", "测试集第 0 张图（从 0 起）", "第 0 次注视，头 0"),
    "letters": (r"^\w*$|^∅$", "正确答案：", "</s>"),
    "curve": (r"^y：平均 .*，固定带宽 .*，学习带宽 ", "", "固定带宽"),
    "vectors": (r"^最关注向量 \d，平方误差 ", "测试集第 0 个序列", "下一个"),
    "looks": (r"^\w+$", "%", "第 0 次查看"),
}


@pytest.mark.parametrize("run", ANSWERS)
def test_an_answer_is_the_answer_alone_and_ours_are_words_of_the_page(visit: PageVisit, page: Any, run: str) -> None:
    answer, below, row = ANSWERS[run]
    visit.open(f"view=ask&run={run}&example=yes&lang=zh")
    page.wait_for_selector(".part-map canvas")
    settle(page)
    expect(page.locator(".answer-text")).to_have_text(re.compile(answer))
    expect(page.locator(".answer")).to_contain_text(below)
    expect(page.locator(".part-queries").get_by_text(row, exact=True).first).to_be_visible()
    assert "␣" not in page.inner_text("main")  # a blank between two words can be seen


def test_two_runs_are_colored_by_one_scale_and_scales_are_shown(visit: PageVisit, page: Any) -> None:
    visit.open("view=translate&run=numbers&text=one+two&with=other&scale=global")
    scales = page.locator(".triple .regard-legend")
    expect(scales).to_have_count(3)
    expect(scales.nth(2)).to_have_attribute("aria-label", re.compile("^−0"))
    settle(page)
    first, second, difference = (scales.nth(place).get_attribute("aria-label") for place in range(3))
    assert first == second
    least, most = difference.split(" – ")
    assert least == f"−{most}"


def test_many_words_leave_the_map_within_reach(visit: PageVisit, page: Any) -> None:
    visit.open("view=ask&run=scenes&example=yes")
    page.wait_for_selector(".regard-frame")
    settle(page)
    frames = page.locator(".regard-frames")
    assert frames.bounding_box()["height"] < 600
    assert frames.evaluate("(place) => place.scrollHeight") >= frames.bounding_box()["height"]


def test_what_is_written_beside_a_sound_can_be_read_on_a_phone(browser: Any, server: Server) -> None:
    context = open_context(browser, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(f"{server.url}#view=ask&run=tones&example=yes")
    canvas = page.locator(".regard-spectrogram")
    canvas.wait_for()
    settle(page)
    assert canvas.evaluate("(canvas) => canvas.clientWidth / canvas.width") > 0.95  # letters of 14 pixels stay so
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_function("() => document.querySelector('.regard-spectrogram').width > 500")
    context.close()


def test_a_first_answer_is_waited_for_in_words(visit: PageVisit, page: Any) -> None:
    held: list[Any] = []
    page.route("**/ask?*", lambda route: held.append(route))
    visit.open("view=ask&run=facts&example=yes&lang=zh")
    expect(page.locator(".answer")).to_have_text("计算中…")
    held[0].continue_()
    page.unroute("**/ask?*")
    page.wait_for_selector(".passage mark")


def test_several_runs_over_each_other(visit: PageVisit, page: Any, folder: Path) -> None:
    lines = (folder / "numbers" / "metrics.jsonl").read_text()
    (folder / "scenes" / "metrics.jsonl").write_text(lines)
    visit.open("view=training&runs=numbers/scenes")
    expect(page.locator(".key").first.locator("span")).to_have_text(
        [re.compile("^numbers · training"), re.compile("^scenes")]
    )
    expect(page.locator(".progress p")).to_have_count(2)
    expect(page.locator(".progress")).to_contain_text("stopped before its end")
    page.locator("svg.curves").first.hover()
    expect(page.locator(".curve .regard-tip").first).to_contain_text("step")


def test_a_server_that_is_gone_is_said_in_every_view(browser: Any, server: Server) -> None:
    context = open_context(browser)
    pages = {view: context.new_page() for view in ("translate&run=numbers&text=one", "ask", "recording", "training")}
    for view, one in pages.items():
        one.goto(f"{server.url}#view={view}")
        one.wait_for_selector("main .card")
        settle(one)
    server.stop()
    for one in pages.values():
        one.wait_for_selector(".banner.gone:has-text('The server does not answer')")
    server.start()
    for one in pages.values():
        one.wait_for_selector(".banner:not(.gone):has-text('The server is back')")
    context.close()
