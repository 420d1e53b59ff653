"""Build the site in both languages into site/: `make docs`.

Written pages (docs/en, docs/zh) with their code run, recorded pages (docs/*.md), and the generated reference go to
build/docs/pages; mkdocs turns them into HTML, which is searched for requests to other hosts.
"""

import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import gallery
import pages
import results
from doctests import part_formulas
from reference.site import write_reference
from search import finish_search

ROOT = pages.ROOT
MADE = ROOT / "build" / "docs" / "pages"
SITE = ROOT / "site"
# Pages that programs of this repository write, from docstrings or measurements, with their titles in Chinese.
RECORDS = {
    "guide": "使用指南",
    "catalog": "目录：公式与文献",
    "tasks": "十个任务",
    "compare": "机制之间的比较",
    "results": "训练结果",
    "benchmarks": "实测速度",
    "export": "导出的翻译模型",
    "transforms": "与 torch 变换的配合",
    "architectures": "能观察哪些模型",
    "faults": "中断与恢复",
    "versions": "试过的版本",
}
STYLE = """
.md-grid { max-width: 72rem; }
.md-typeset pre > code { font-size: 0.68rem; }
.md-typeset td code { overflow-wrap: normal; word-break: normal; } /* a table scrolls; a name is not broken */
.md-typeset table:not([class]) td, .md-typeset table:not([class]) th { min-width: 4rem; padding: 0.5em 0.8em; }
.formula math { font-size: 1.1em; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1rem; align-items: end; }
.gallery p { margin: 0; font-size: 0.65rem; }
div.formula { overflow-x: auto; margin: 1em 0; }
.md-typeset img[src$=".svg"] { background: white; padding: 0.3em; }
"""
FOREIGN = re.compile(
    r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//(?!localhost)[^>]*>"""
)
HARMLESS = re.compile(r"""rel=["']?(?:canonical|alternate|edit)""")


def main() -> int:
    """Build everything; with `--check` only run the code and compare the languages."""
    begun = time.monotonic()
    try:
        counts = make_pages()
    except pages.PageError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{counts}; {time.monotonic() - begun:.0f} s for the code", flush=True)
    if "--check" in sys.argv:
        return 0
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-f", "docs/mkdocs.yml"], cwd=ROOT, check=True
    )
    finish_search(SITE)
    found = list(find_foreign_requests())
    for line in found:
        print(line, file=sys.stderr)
    print(f"site/index.html; {time.monotonic() - begun:.0f} s")
    return 1 if found else 0


def make_pages() -> str:
    """Write all sources of the site, and return how many there are of what."""
    pages.compare_languages()
    shutil.rmtree(MADE, ignore_errors=True)
    blocks, figures, words = 0, 0, 0
    for name, (english, chinese) in run_pages():
        folders = [(MADE / language / name).parent for language in ("en", "zh")]
        texts = (
            pages.render_english(name, english, folders[0]),
            pages.render_chinese(name, chinese, folders[1]),
        )
        for language, text in zip(("en", "zh"), texts, strict=True):
            write(MADE / language / name, results.fill_tables(text, language))
        blocks, figures = blocks + len(english), figures + sum(outcome.figure is not None for outcome in english)
        words += len(pages.read_page("en", name).split()) + len(
            re.findall(r"[\u4e00-\u9fff]", pages.read_page("zh", name))
        )
    write(MADE / "site.css", STYLE)
    for language in ("en", "zh"):
        write(MADE / language / "gallery.md", gallery.render_gallery(MADE / language, language))
    copy_records()
    names = max(write_reference(MADE / language / "reference", language) for language in ("en", "zh"))
    count = f"{len(pages.list_pages('en'))} pages in two languages, {words} words, {blocks} blocks, {figures} figures"
    return f"{count}; {names} names in the reference"


def run_pages() -> list[tuple[str, pages.PageOutcome]]:
    """Return the outcomes of every page; pages run side by side, those of tasks, which train a model, first."""
    names = sorted(pages.list_pages("en"), key=lambda name: not name.startswith("tasks/"))
    run = partial(pages.run_page, source=pages.compute_source_digest())
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(os.cpu_count() or 1, 4), mp_context=spawn) as pool:
        return list(zip(names, pool.map(run, names), strict=True))


def copy_records() -> None:
    """Copy the recorded pages, their pictures beside them; links to files of the repository become plain text."""
    for name, title in RECORDS.items():
        for language in ("en", "zh"):
            own_language = ROOT / "docs" / f"{name}.zh-CN.md"
            is_written = language == "zh" and own_language.exists()
            text = (own_language if is_written else ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
            folder = MADE / language / "records"
            own = part_formulas(
                re.sub(r"(!?)\[([^\]]*)\]\(([^)#]+)(#[^)]*)?\)", lambda found, to=folder: _relink(found, to), text)
            )
            note = "本页由程序写成：数字来自记录，公式来自源码，故用英文。"
            if language == "zh" and not is_written:
                own = re.sub("^# .*", f"# {title}\n\n{note}", own, count=1)
            write(folder / f"{name}.md", own)


def _relink(found: re.Match[str], folder: Path) -> str:
    picture, text, target, anchor = found.groups()
    if target.startswith("http"):
        return found[0]
    path = (ROOT / "docs" / target).resolve()
    if picture and path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / path.name)
        return f"![{text}]({path.name})"
    if path.parent == ROOT / "docs" and path.stem in RECORDS:
        return f"[{text}]({path.name}{anchor or ''})"
    return text


def write(path: Path, text: str) -> None:
    """Write a file, its folder first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def find_foreign_requests() -> list[str]:
    """Return what a reader's browser would ask of another host: nothing must be left."""
    found = [
        f"{page.relative_to(SITE)}: {tag[0]}"
        for page in SITE.rglob("*.html")
        for tag in FOREIGN.finditer(page.read_text(encoding="utf-8"))
        if not HARMLESS.search(tag[0])
    ]
    styles = [
        f"{path.relative_to(SITE)}: {url}"
        for path in SITE.rglob("*.css")
        for url in re.findall(r"url\([\"']?(https?://[^)]+)\)", path.read_text(encoding="utf-8"))
    ]
    return found + styles


if __name__ == "__main__":
    raise SystemExit(main())
