"""What was measured, kept and read again."""

import doctest
import math
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import __main__ as command
from benchmarks import formats, growth, highlights, peers, report
from benchmarks.growth import estimate_exponent
from benchmarks.results import CaseResult, Check, CurveResult, Entry, Point, Result, Setting, load, save
from benchmarks.viewers import HALF, HEAD, MODEL, OURS, PATIENCE, build_case

SETTING = Setting("a processor", 2, "Linux x86_64", "3.11.7", "2.13.0", 2, 0.1, 0.02, "2026-11-15", "abc1234", False)
CASE = CaseResult(
    "2 × 3 × 5, forward",
    "s",
    [
        Entry("regard", 0.002, 0.0019, 0.0021, 9),
        Entry("textbook", 0.1, 0.09, 0.11, 9, 2e-7),
        Entry("greedy", 0.3, 0.3, 0.3, 1, over=True),
    ],
    [Check("faster than textbook", 50.0, 45.0, 55.0, "least", 40.0)],
    {"absent": "No module named 'absent'"},
)
CURVE = CurveResult("sdpa", True, [Point(256, 0.001, 1.5), Point(512, 0.004, 3.0)], 2.0, 1.0)
RESULT = Result("additive_forward", "Additive", SETTING, [CASE], [CURVE])


def test_saved_and_read_again_is_the_same(tmp_path: Path) -> None:
    assert load(save(RESULT, tmp_path / "new")) == RESULT
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["additive_forward.json"]


def test_a_bound_holds_on_its_side() -> None:
    assert Check("", 40.0, 39.0, 41.0, "least", 40.0).holds
    assert not Check("", 39.9, 39.0, 41.0, "least", 40.0).holds
    assert Check("", 2.0, 1.9, 2.1, "most", 2.0).holds
    assert not Check("", 2.1, 1.9, 2.1, "most", 2.0).holds


def test_the_exponent_is_that_of_a_power() -> None:
    lengths = [256, 512, 1024, 2048, 4096, 8192]
    assert estimate_exponent(lengths, [3e-9 * length**1.5 for length in lengths]) == pytest.approx(1.5)
    assert math.isnan(estimate_exponent([256], [1.0]))


def test_a_readme_gets_its_block_once() -> None:
    first = report.replace_between("# title\n\ntext\n", report.BEGIN, report.END, "numbers")
    assert first == f"# title\n\ntext\n\n{report.BEGIN}\nnumbers\n{report.END}\n"
    assert report.replace_between(first, report.BEGIN, report.END, "numbers") == first


def test_only_the_block_is_replaced() -> None:
    text = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    replaced = report.replace_between(text, report.BEGIN, report.END, "new")
    assert replaced == f"before\n{report.BEGIN}\nnew\n{report.END}\nafter\n"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_readme_shows_the_figures_that_were_measured(language: highlights.Language) -> None:
    case = CaseResult("c", "s", [], [Check("faster than JoeyNMT", 21.07, 20.0, 22.0, "least", 40.0)])
    result = Result("additive_backward", "Additive", SETTING, [CASE, case], [])
    assert "| **21.1×** | JoeyNMT |" in highlights.render_highlights([result], language)
    assert "✗" not in highlights.render_highlights(report.load_results(), language)
    assert len(highlights.render_highlights(report.load_results(), language).splitlines()) == 2 + 8 + 2


def test_the_page_says_what_fell_short() -> None:
    page = report.render_page([RESULT])
    assert "| Additive, 2 × 3 × 5, forward | **50.0× (45.0 – 55.0)** faster than textbook | ≥ 40× |" in page
    assert report.NOTHING in report.render_page([])
    assert "## With AVX2" not in page
    assert "## With AVX2" in report.render_page([RESULT], [RESULT])


def test_the_page_has_every_contender() -> None:
    page = report.render_page([RESULT])
    assert "| textbook | 50.0× | 100 ms (90.0 ms – 110 ms) | 2e-07 |" in page
    assert "| greedy | over 150× | over 300 ms | – |" in page
    assert "| absent | | not measured: No module named 'absent' | |" in page
    assert "| sdpa | n^2.00 | n^1.00 | 512 | 4.00 ms, 3.00 MB |" in page


def test_a_busy_machine_is_said_loudly() -> None:
    busy = Setting(*(getattr(SETTING, name) if name != "others" else 1.5 for name in SETTING.__slots__))
    assert "**The machine was busy" in report.describe_time(busy)
    assert "busy:" not in report.describe_time(SETTING)


def test_the_tables_are_as_measured() -> None:
    assert report.find_stale() == [], "run python -m benchmarks.report"


def test_a_changed_table_is_stale(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# title\n")
    assert {path.name for path in report.find_stale(tmp_path)} == {
        "README.md",
        "benchmarks.md",
        "compare.md",
        "results.md",
    }
    report.write(tmp_path)
    assert report.find_stale(tmp_path) == []
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text().replace(report.END, f"| better | **99×** | |\n{report.END}"))
    assert report.find_stale(tmp_path) == [readme]


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["benchmarks", *arguments])
    return command.main()


def test_an_unknown_claim_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(monkeypatch, "additive_backwards") == 2
    assert capsys.readouterr().err.startswith("benchmarks: names: got additive_backwards, expected some of additive_")


def test_a_busy_machine_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "measure_other_load", lambda: 1.25)
    monkeypatch.setattr(peers, "is_installed", lambda: True)
    assert run_command(monkeypatch, "window") == 2
    assert capsys.readouterr().err == (
        "benchmarks: machine: got 1.2 cores busy with other work, expected at most 0.5; "
        "fix: stop what else is running, or say --busy (the results will be marked)\n"
    )


def test_missing_peers_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(peers, "is_installed", lambda: False)
    assert run_command(monkeypatch, "window") == 2
    assert "fix: python -m benchmarks.peers" in capsys.readouterr().err


def test_every_pip_line_is_pinned() -> None:
    pins = peers.PINS.read_text().splitlines()
    assert "torch==2.13.0" in pins
    assert all("==" in line for line in pins if line and not line.startswith("#"))
    named = {line.split("==")[0].lower() for line in pins}
    assert {name.lower() for name in (*peers.WHOLE, *peers.ALONE)} <= named


@pytest.mark.parametrize("module", [formats, growth])
def test_the_examples_are_true(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_a_viewer_that_is_never_drawn_takes_longer_than_anybody_waits(tmp_path: Path) -> None:
    shown = {OURS: [1.0, 3.0, 2.0], HEAD: [8.0], MODEL: [None]}
    drawn = build_case("64 tokens, time to draw", "s", shown, HALF)
    assert [(entry.name, entry.median, entry.over) for entry in drawn.entries[1:]] == [
        (HEAD, 8.0, False),
        (MODEL, PATIENCE, True),
    ]
    assert [check.value for check in drawn.checks] == [2 / 8, 2 / PATIENCE]
    held = build_case("64 tokens, memory of the tab", "MB", shown, None)
    assert (list(held.missing), held.checks) == ([MODEL], [])
    path = save(Result("viewers", "Cells", SETTING, [drawn, held]), tmp_path)
    assert "| | × ours | memory of the tab | difference from ours |" in report.render_page([load(path)])
