"""Say in Chinese what the server answers, "name: got …, expected …; fix: …", by the table in `messages.toml`."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from starlette.requests import HTTPConnection

Language = Literal["en", "zh"]
LONGEST = 2_000  # characters of a message that is translated: the time that patterns take grows faster than their text
FORM = re.compile(r"(.*?): got (.*), expected (.*?); fix: (.*)", re.DOTALL)

TABLE: Mapping[str, Mapping[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def compile_template(template: str) -> re.Pattern[str]:
    """Return the pattern of a sentence in which each {} is filled in."""
    return re.compile("(.+?)".join(map(re.escape, template.split("{}"))), re.DOTALL)


# Sentences with the fewest words filled in first: they say most.
PATTERNS = [
    (compile_template(english), TABLE["parts"][english])
    for english in sorted(TABLE["parts"], key=lambda english: (english.count("{}"), -len(english)))
]


def choose_language(accepted: str) -> Language:
    """Return the language that the reader wants most of those that there are, by the header `Accept-Language`.

    >>> choose_language("zh-CN,zh;q=0.9,en;q=0.8"), choose_language("de, en;q=0.5, zh;q=0.2"), choose_language("")
    ('zh', 'en', 'en')
    """
    shares: dict[str, float] = {}
    for one in accepted.split(",")[:20]:
        name, _, given = one.strip().lower().partition(";q=")
        share = float(given) if re.fullmatch(r"[01](\.\d{1,3})?", given) else float(not given)
        shares[name[:2]] = max(share, shares.get(name[:2], 0.0))
    return "zh" if shares.get("zh", 0.0) > shares.get("en", 0.0) else "en"


def localize_for(request: HTTPConnection, text: str) -> str:
    """Return a message in the language that a request asks for."""
    return localize_message(text, choose_language(request.headers.get("accept-language", "")))


def localize_message(text: str, language: Language) -> str:
    """Return a message in the reader's language; what is not in the table stays English within a Chinese frame.

    >>> localize_message("text: got nothing but blanks, expected some words; fix: write a sentence", "zh")
    '文本：收到 只有空白，需要 一些词；办法：写一个句子'
    """
    match = FORM.fullmatch(text) if language == "zh" and len(text) <= LONGEST else None
    if match is None:
        return text
    name, got, expected, fix = match.groups()
    names = "：".join(TABLE["names"].get(part, part) for part in name.split(": "))
    return f"{names}：收到 {translate_part(got)}，需要 {translate_part(expected)}；办法：{translate_part(fix)}"


def translate_part(text: str) -> str:
    """Return one part of a message in Chinese, if it is known."""
    for pattern, chinese in PATTERNS:
        if match := pattern.fullmatch(text):
            return chinese.format(*(TABLE["names"].get(filled, filled) for filled in match.groups()))
    return text
