"""Every link of every Markdown file leads somewhere: to a file, and to a heading if it names one."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
OTHERS = {".git", ".venv", "site", "node_modules", ".pytest_cache", "build", "dist"}
FILES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not OTHERS & {*path.relative_to(ROOT).parts} and not path.relative_to(ROOT).parts[0].startswith("runs")
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FIGURE = "figure"  # a page of the site puts there what the block above it has drawn
PAGES = set(re.findall(r"[\w/-]+\.md", (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")))


def read_prose(path: Path) -> str:
    """Return the text of a file without code."""
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "code", text)


@cache
def find_anchors(path: Path) -> set[str]:
    """Return what headings are called in links."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).strip().lower() for title in titles]
    named = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)) | set(re.findall(r"\{ ?#([\w-]+) ?\}", text))
    return named | {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in plain}


def is_generated(target: Path, path: Path) -> bool:
    """Return whether a page of the site links to what is made when it is built, or to a result yet to be recorded."""
    language = ROOT / "docs" / path.relative_to(ROOT / "docs").parts[0] if path.is_relative_to(ROOT / "docs") else None
    if language is None or language.name not in ("en", "zh"):
        return False
    if target.resolve().parent == ROOT / "benchmarks" / "results":
        return True  # docs/results.py puts the table there, or says that it is not recorded yet
    name = target.resolve().relative_to(language).as_posix() if target.resolve().is_relative_to(language) else ""
    return name in PAGES


def find_dead_links(path: Path) -> list[str]:
    dead = []
    for link in LINK.findall(read_prose(path)):
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or link == FIGURE:
            continue
        target = path.parent / unquote(name) if name else path
        if not target.exists():
            dead += [] if is_generated(target, path) else [link]
        elif anchor and target.suffix == ".md" and anchor not in find_anchors(target):
            dead.append(link)
    return dead


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert find_dead_links(path) == []


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A `name`, and more\n")
    text = (
        "[a](other.md) [b](other.md#a-name-and-more) [c](other.md#trained) [d](nowhere.md) `[e](x.md)` [f](https://a.b)"
    )
    (tmp_path / "page.md").write_text(text)
    assert find_dead_links(tmp_path / "page.md") == ["other.md#trained", "nowhere.md"]
