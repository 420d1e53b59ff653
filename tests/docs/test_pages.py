"""The written pages of the site: both languages, the same code, and what each must have. `make docs` runs the code."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]


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
    assert [int(each) for each in pages.CODE.findall(chinese)] == list(range(1, len(blocks) + 1))
    assert len(pages.FIGURE.findall(english)) == len(pages.FIGURE.findall(chinese))
    assert re.findall(r"\{\{ table .* \}\}", english) == re.findall(r"\{\{ table .* \}\}", chinese)
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
        assert "{{ table tasks-" in text


def test_what_a_block_prints_and_draws_is_shown_below_it(tmp_path: Path) -> None:
    text = "# One\n\n```python\nprint(6 * 7)\n```\n\nthen\n\n```python\n{}```\n\n![a line](figure)\n"
    draw = "from matplotlib.figure import Figure\nfigure = Figure()\n"
    blocks = pages.BLOCK.findall(text.format(draw))
    outcomes = [
        pages.Outcome(printed, drawn and str(tmp_path / drawn))
        for printed, drawn in pages.run_blocks("one.md", blocks, tmp_path)
    ]
    whole = pages.render_english("one.md", text.format(draw), outcomes, tmp_path / "made")
    assert '```\n\n```text title="→"\n42\n```' in whole
    assert "![a line](one-2.svg)" in whole
    assert (tmp_path / "made" / "one-2.svg").exists()
    chinese = "# 一\n\n{{ code 1 }}\n\n{{ code 2 }}\n\n![线](figure)\n"
    assert "print(6 * 7)" in pages.render_chinese("one.md", chinese, text.format(draw), outcomes, tmp_path / "made")
    with pytest.raises(pages.PageError, match="drew no figure"):
        pages.render_english("one.md", text.format("1\n"), [outcomes[0], outcomes[0]], tmp_path / "made")


def test_a_block_that_fails_names_its_page(tmp_path: Path) -> None:
    with pytest.raises(pages.PageError, match=r"docs/en/one\.md, block 1: ZeroDivisionError"):
        list(pages.run_blocks("one.md", ["1 / 0\n"], tmp_path))


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
    for name in sorted(shown - {"agreement"}):
        made = results.fill_tables(f"{{{{ table {name} }}}}", "zh")
        title, rows = made.splitlines()[0], made.splitlines()[2:-2]
        assert re.search(r"[\u4e00-\u9fff]", title), title
        names = [row.split(" | ")[0].strip("| ") for row in rows]
        proper = ("Bahdanau", "Luong", "Luong（general）", "Transformer-Tiny")
        assert [each for each in names if not re.search(r"[\u4e00-\u9fff]", each) and each not in proper] == []
