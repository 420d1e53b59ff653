"""The search of the site: the articles' terms are words of their own, and each language has its own index.

mkdocs calls `on_config`; website.py calls `finish_search` when both languages are there.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

TERMS = Path(__file__).parent / "zh" / "articles" / "terms.md"
HAN = re.compile(r"[\u4e00-\u9fff]{2,}")
INDEX = Path("search") / "search_index.json"
# Of a word that is searched for, the theme looks up all parts but those that reach its end: < for <=.
OFF_BY_ONE = re.compile(r"(for\(let (\w+)=(\w+)\+1;\2)<((\w+)\.length;\2\+\+\)\5\.slice\(\3,\2\)in )")


def on_config(config: Any) -> Any:
    """Let the terms of the articles stay whole when Chinese is cut into words; otherwise 注意力 is found everywhere."""
    import jieba

    for word in list_words():
        jieba.add_word(word)
    return config


def list_words() -> list[str]:
    """Return the Chinese words of the headings of the terms."""
    headings = re.findall("^## (.+)$", TERMS.read_text(encoding="utf-8"), re.MULTILINE)
    return [word for heading in headings for part in heading.split("与") for word in HAN.findall(part)]


def finish_search(site: Path) -> None:
    """Make the search of a built site find whole Chinese words, in pages of the reader's language."""
    split_index(site)
    shutil.copy(site / "sitemap.xml", site / "zh" / "sitemap.xml")  # the theme's choice of language asks for it
    for worker in (site / "assets" / "javascripts" / "workers").glob("search.*.js"):
        text, count = OFF_BY_ONE.subn(r"\1<=\4", worker.read_text(encoding="utf-8"))
        if count != 1:
            raise ValueError(
                f"{worker.name}: got {count} loops over parts of a word, expected 1; fix: look at search.py"
            )
        worker.write_text(text, encoding="utf-8")


def split_index(site: Path) -> None:
    """Give the pages below zh/ an index of their own, and take them out of the English one."""
    whole = json.loads((site / INDEX).read_text(encoding="utf-8"))
    chinese = [entry for entry in whole["docs"] if entry["location"].startswith("zh/")]
    english = [entry for entry in whole["docs"] if not entry["location"].startswith("zh/")]
    own = [entry | {"location": entry["location"].removeprefix("zh/")} for entry in chinese]
    for folder, entries in ((site, english), (site / "zh", own)):
        target = folder / INDEX
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(whole | {"docs": entries}, ensure_ascii=False), encoding="utf-8")
    for page in (site / "zh").rglob("*.html"):
        page.write_text(move_base(page.read_text(encoding="utf-8")), encoding="utf-8")


def move_base(text: str) -> str:
    """Return a page whose search begins in zh/ instead of one folder above; the paths of scripts stay.

    >>> move_base('"base": "../..", "search": "../../w.js"'), move_base('"base":".."')
    ('"base": "..", "search": "../../w.js"', '"base":"."')
    """
    moved = re.sub(r'("base": ?")\.\./(?=\.\.)', r"\1", text, count=1)
    return moved if moved != text else re.sub(r'("base": ?")\.\."', r'\1."', text, count=1)
