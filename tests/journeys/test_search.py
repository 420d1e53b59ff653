"""The search of the site, in a real browser: words of the articles lead to the page that explains them."""

import functools
import http.server
import importlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect
from serving import WatchedPage

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs"))  # where pages find their own modules
pages, search = (importlib.import_module(name) for name in ("pages", "search"))

FIRST = {
    "zh/": {
        "注意力汇聚": "articles/terms.html#attention-pooling",
        "有效长度": "ideas/masks.html",
        "局部注意力": "ideas/global-local.html",
        "上下文向量": "articles/terms.html#context-vector",
        "并行度": "articles/terms.html#parallelism",
        "加性注意力": "articles/terms.html#additive-attention",
        "位置编码": "ideas/positions.html",
        "硬注意力": "ideas/soft-hard.html",
        "看图说话": "tasks/captioning.html",
        "Transformer": "ideas/transformer.html",
    },
    "": {
        "valid length": "ideas/masks.html",
        "local attention": "ideas/global-local.html",
        "parallelism": "articles/terms.html#parallelism",
        "additive attention": "articles/terms.html#additive-attention",
        "hard attention": "ideas/soft-hard.html",
        "notebook": "how-to/notebook.html",
        "entmax": "how-to/coming-from.html",
    },
}
INPUT = "[data-md-component=search-query]"
ITEMS = ".md-search-result__item"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The written pages as a site with the real search: their code is not run, so it takes seconds."""
    folder = tmp_path_factory.mktemp("site")
    for language in ("en", "zh"):
        for name in pages.list_pages(language):
            path = folder / "pages" / language / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = pages.split_words(pages.read_page(language, name))[1]
            path.write_text(pages.FIGURE.sub("", text), encoding="utf-8")
    config = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8"))
    config |= {
        "docs_dir": str(folder / "pages"),
        "site_dir": str(folder / "made"),
        "hooks": [str(ROOT / "docs" / "search.py")],
        "validation": {},
    }
    for left_out in ("nav", "extra_css"):
        del config[left_out]
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-f", str(folder / "mkdocs.yml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    search.finish_search(folder / "made")
    handler = functools.partial(QuietHandler, directory=str(folder / "made"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def ask(page: Page, words: str, count: int = 1) -> list[list[str]]:
    """Return where the first results lead: each to a page, and to the places on it that fit best."""
    page.fill(INPUT, "")
    page.dispatch_event(INPUT, "keyup")
    expect(page.locator(ITEMS)).to_have_count(0)
    page.fill(INPUT, words)
    page.dispatch_event(INPUT, "keyup")
    expect(page.locator(ITEMS).first).to_be_attached()
    links = f"links => links.slice(0, {count}).map(item => [...item.querySelectorAll('a')].map(link => link.href))"
    found: list[list[str]] = page.locator(ITEMS).evaluate_all(links)
    return found


@pytest.mark.parametrize("language", FIRST, ids=["zh", "en"])
def test_the_right_page_comes_first(language: str, site: str, watched_page: WatchedPage) -> None:
    watched_page.page.goto(f"{site}{language}index.html")
    found = {words: ask(watched_page.page, words)[0][:2] for words in FIRST[language]}
    wanted = {words: f"{site}{language}{target}" for words, target in FIRST[language].items()}
    assert {words: found[words] for words in found if wanted[words] not in found[words]} == {}


def test_every_term_of_the_articles_is_found(site: str, watched_page: WatchedPage) -> None:
    """One of the first three pages is that of the terms, or the one to which the term leads there."""
    watched_page.page.goto(f"{site}zh/index.html")
    sections = search.TERMS.read_text(encoding="utf-8").split("\n## ")[1:]
    lost = {}
    for section in sections:
        words = next(iter(search.HAN.findall(section.partition("\n")[0])), "Transformer")
        linked = {"articles/terms", *re.findall(r"\]\(\.\./(.+?)\.md", section)}
        found = [group[0].removeprefix(f"{site}zh/") for group in ask(watched_page.page, words, count=3)]
        if not linked & {each.partition(".html")[0] for each in found}:
            lost[words] = found
    assert len(sections) > 60
    assert lost == {}
