"""The written pages of the site: both languages, the same code, and what each must have. `make docs` runs the code."""

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))  # where pages find their own modules


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = load("pages")
NAMES = pages.list_pages("en")


def test_every_page_is_in_both_languages_and_in_the_navigation() -> None:
    pages.compare_languages()
    text = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(text.split("nav:")[1].split("markdown_extensions:")[0])
    listed = set(re.findall(r"[\w/-]+\.md", str(nav)))
    assert set(NAMES) <= listed


def test_a_page_in_one_language_only_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language in ("en", "zh"):
        (tmp_path / "docs" / language).mkdir(parents=True)
    (tmp_path / "docs" / "en" / "alone.md").write_text("# Alone")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    with pytest.raises(pages.PageError, match=r"alone\.md.* in one language only"):
        pages.compare_languages()


@pytest.mark.parametrize("name", NAMES)
def test_the_chinese_page_shows_every_block_and_picture(name: str) -> None:
    english, chinese = pages.read_page("en", name), pages.read_page("zh", name)
    blocks = pages.BLOCK.findall(english)
    assert chinese == pages.fill_code(name)
    assert len(pages.BLOCK.findall(chinese)) == len(blocks)
    assert len(pages.FIGURE.findall(english)) == len(pages.FIGURE.findall(chinese))
    tables = [re.findall(r"^\[.+\](\(.*benchmarks/results/.*\))$", text, re.MULTILINE) for text in (english, chinese)]
    assert tables[0] == tables[1]
    assert len(tables[0]) == len(load("results").TABLE.findall(english))
    assert english.count("```console") == chinese.count("```console")
    assert len(re.findall(r"[\u4e00-\u9fff]", chinese)) > 100


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("ideas/", "tasks/"))])
def test_a_page_of_an_idea_or_task_is_complete(name: str) -> None:
    text = pages.read_page("en", name)
    assert "$" in text
    assert pages.FIGURE.search(text)
    assert "```console\n$ regard " in text
    for heading in ("## Full size", "## References"):
        assert heading in text
    if name.startswith("tasks/"):
        assert "## Change and watch" in text
        assert "](../../../benchmarks/results/tasks-" in text


DRAW = "from matplotlib.figure import Figure\nfigure = Figure()\nfigure.subplots().set(xlabel='keys')\n"
ENGLISH = "# One\n\n```python\nprint(6 * 7)  # twice\n```\n\nthen\n\n```python\n{}```\n\n![a line](figure)\n"
CHINESE = "# 一\n\n{{ code }}\n\n{{ code }}\n\n![线](figure)\n\n<!-- words:\n  keys: 键\n  twice: 两次\n-->\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Write a page in both languages, as the only one that there is."""
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "CACHE", tmp_path / "cache")

    def write_page(english: str, chinese: str) -> None:
        for language, text in (("en", english), ("zh", chinese)):
            path = tmp_path / "docs" / language / "one.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    return write_page


def test_what_a_block_prints_and_draws_is_shown_below_it(tmp_path: Path, write: Callable[[str, str], None]) -> None:
    write(ENGLISH.format(DRAW), CHINESE)
    found = pages.run_page("one.md", "source")
    whole = pages.render_english("one.md", found.english, tmp_path / "made")
    assert '```\n\n```text title="→"\n42\n```' in whole
    assert "![a line](one-2.en.svg)" in whole
    assert (tmp_path / "made" / "one-2.en.svg").exists()
    assert pages.run_page("one.md", "source") == found  # from the cache
    with pytest.raises(pages.PageError, match="drew no figure"):
        pages.render_english("one.md", [found.english[0]] * 2, tmp_path / "made")


def test_code_and_figures_of_a_chinese_page_are_chinese(tmp_path: Path, write: Callable[[str, str], None]) -> None:
    write(ENGLISH.format(DRAW), CHINESE)
    found = pages.run_page("one.md", "source")
    with pytest.raises(pages.PageError, match=r"docs/zh/one\.md: got code .* fix: python docs/build\.py"):
        pages.render_chinese("one.md", found.chinese, tmp_path / "made")
    write(ENGLISH.format(DRAW), pages.fill_code("one.md"))
    whole = pages.render_chinese("one.md", found.chinese, tmp_path / "made")
    assert whole.startswith("# 一")
    assert "words" not in whole
    assert "print(6 * 7)  # 两次" in whole
    assert "set(xlabel='键')" in whole
    assert "add_chinese_font()" in whole
    drawn = [(tmp_path / "made" / "one-2.zh.svg").read_bytes(), Path(found.english[1].figure).read_bytes()]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("draw", "got"),
    [
        ("figure = Figure()\nfigure.text(0, 0, '\U0001f980')\n", r"Glyph 129408 \("),
        ("figure = draw_alignment(np.eye(2), ['\ua980', 'b'], ['c', 'd'])\n", r"got \['\[1\] U\+A980"),
    ],
)
def test_a_figure_with_a_character_that_no_font_has_is_an_error(
    tmp_path: Path, draw: str, got: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.inspect.draw.fonts.findSystemFonts", list)
    names = "from regard.inspect.draw.alignment import draw_alignment\nimport numpy as np\n"
    block = f"{names}from matplotlib.figure import Figure\n{draw}"
    with pytest.raises(pages.PageError, match=rf"^docs/en/one\.md, block 1: {got}.*; fix: install a font"):
        list(pages.run_blocks("en/one.md", [block], tmp_path, {}))


def test_a_chinese_page_with_english_in_its_figure_is_an_error(write: Callable[[str, str], None]) -> None:
    write(ENGLISH.format(DRAW), CHINESE.replace("  keys: 键\n", ""))
    with pytest.raises(pages.PageError, match=r"docs/zh/one\.md, block 2: got \['keys'\] in its figure"):
        pages.run_page("one.md", "source")
    write(ENGLISH.format(DRAW), CHINESE.replace("keys", "kyes"))
    with pytest.raises(pages.PageError, match=r"docs/zh/one\.md: got words \['kyes'\]"):
        pages.run_page("one.md", "source")


@pytest.mark.parametrize("name", NAMES)
def test_chinese_pages_print_chinese(name: str) -> None:
    """A name or a file may stay as it is; two English words beside each other are a sentence."""
    trees = [ast.parse(block) for block in pages.BLOCK.findall(pages.read_page("zh", name))]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    printed = [each for call in calls if ast.unparse(call.func) == "print" for each in ast.walk(call)]
    texts = [each.value for each in printed if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    assert [text for text in texts if re.search("[a-z]{2,},? [a-z]{2,}", text) and not re.search("[一-鿿]", text)] == []


def test_a_block_that_prints_in_both_languages_runs_once(write: Callable[[str, str], None]) -> None:
    """Random numbers are those of one run, and a figure in between does not change that."""
    block = "from torch import rand\nruns = globals().get('runs', 0) + 1\nprint('run', runs, rand(1).item())\n"
    draw = "from regard.inspect.draw.structure import draw_structure\nfigure = draw_structure('memory')\n"
    english = f"# One\n\n```python\n{draw}```\n\n```python\n{block}```\n\n```python\n{block}```\n"
    write(english, "# 一\n\n{{ code }}\n\n{{ code }}\n\n{{ code }}\n\n<!-- words:\n  run: 第几次\n-->\n")
    found = pages.run_page("one.md", "source")
    assert found.english[0].figure != found.chinese[0].figure
    assert [each.printed.split()[:2] for each in found.english[1:]] == [["run", "1"], ["run", "2"]]
    assert [each.printed.split()[:2] for each in found.chinese[1:]] == [["第几次", "1"], ["第几次", "2"]]
    numbers = [[each.printed.split()[2] for each in outcomes[1:]] for outcomes in found]
    assert numbers[0] == numbers[1]
    assert len(set(numbers[0])) == 2


def test_a_figure_has_the_font_for_words_of_an_earlier_block(write: Callable[[str, str], None]) -> None:
    draw = "from matplotlib.figure import Figure\nfigure = Figure()\nfigure.subplots().set(xlabel=name)\n"
    write(f"# One\n\n```python\nname = 'keys'\n```\n\n```python\n{draw}```\n", CHINESE.replace("  twice: 两次\n", ""))
    assert "add_chinese_font()" in pages.read_code("one.md").chinese[1]


def test_a_chinese_page_that_lacks_a_block_is_an_error(write: Callable[[str, str], None]) -> None:
    write(ENGLISH.format(DRAW), CHINESE.replace("{{ code }}\n", "", 1))
    with pytest.raises(pages.PageError, match=r"docs/zh/one\.md: got 1 blocks, expected 2"):
        pages.fill_code("one.md")


def test_a_block_that_fails_names_its_page(tmp_path: Path) -> None:
    with pytest.raises(pages.PageError, match=r"docs/en/one\.md, block 1: ZeroDivisionError"):
        list(pages.run_blocks("en/one.md", ["1 / 0\n"], tmp_path, {}))


def test_formulas_become_mathml() -> None:
    pytest.importorskip("latex2mathml")
    made = load("formulas").on_page_content(
        r'<p>a <span class="arithmatex">\(x &lt; \operatorname{argmax}_j\)</span></p>'
    )
    assert "<math" in made
    assert "arithmatex" not in made


def test_lines_of_a_chinese_paragraph_are_joined() -> None:
    """Not those of lists and tables, nor where a word of another script begins."""
    joined = pages.join_lines("一二，\n三四\n- 五\n  六\n| 七 |\n八 \nabc\n")
    assert joined == "一二，三四\n- 五六\n| 七 |\n八 \nabc\n"


def test_the_gallery_leads_from_every_figure_to_its_page(tmp_path: Path) -> None:
    (tmp_path / "ideas").mkdir()
    (tmp_path / "ideas" / "one.md").write_text("# One\n\n![a line](one-2.svg)\n", encoding="utf-8")
    made = load("gallery").render_gallery(tmp_path, "en")
    assert "[![a line](ideas/one-2.svg)<br>a line](ideas/one.md)" in made


def test_recorded_tables_are_chinese_on_chinese_pages() -> None:
    """But for the names of systems, which are the same everywhere."""
    results = load("results")
    shown = {name for page in NAMES for name in results.TABLE.findall(pages.read_page("zh", page))}
    assert len(shown) > 10
    recorded = {name for name in shown if (results.RESULTS / f"{name}.json").exists()}
    for name in sorted(recorded - {"agreement"}):
        made = results.fill_tables(f"[结果](../../../benchmarks/results/{name}.json)", "zh")
        title, rows = made.splitlines()[0], made.splitlines()[2:-2]
        assert re.search(r"[\u4e00-\u9fff]", title), title
        names = [row.split(" | ")[0].strip("| ") for row in rows]
        proper = re.compile(r"(Bahdanau|Luong|Transformer|Tiny|general|concat|[（），-])+")
        assert [each for each in names if not re.search(r"[\u4e00-\u9fff]", each) and not proper.fullmatch(each)] == []


def test_a_claim_is_a_table_in_both_languages_and_says_how_to_measure_it_if_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = load("results")
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    link = "[result](../../../benchmarks/results/viewers.json)"
    assert "python -m benchmarks.viewers" in results.fill_tables(link, "zh")
    compared = "[result](../../../benchmarks/results/compare-norms.json)"
    assert "`python -m benchmarks.comparisons norms`" in results.fill_tables(compared, "en")
    entries = [
        {"name": name, "median": median, "low": median, "high": median, "runs": 1, "over": over}
        for name, median, over in (("regard, panel", 1.5, False), ("bertviz, head_view", 60.0, True))
    ]
    check = {"says": "of bertviz, head_view", "value": 0.6, "low": 0.6, "high": 0.6, "sense": "most", "bound": 0.5}
    name = "12 × 12 heads, 64 tokens, time to draw"
    case = {"name": name, "unit": "s", "entries": entries, "checks": [check], "missing": {"other": "no"}}
    setting = {"date": "2026-11-18", "threads": 2, "others": 0.1, "processor": "x"}
    record = {"title": "Attention in a cell and on the page", "setting": setting, "cases": [case]}
    (tmp_path / "viewers.json").write_text(json.dumps(record), encoding="utf-8")
    assert f"| {name}: bertviz, head_view | over 60.0 s | ≤ 0.5× ✗ |" in results.fill_tables(link, "en")
    chinese = results.fill_tables(link, "zh")
    assert "| 12 × 12 个头，64 个词元，画出所需的时间：regard 的面板 | 1.50 s |  |" in chinese
    assert "：other | — |" in chinese
