"""A hook of mkdocs: formulas become MathML while the site is built, so that a browser runs and fetches nothing."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\((.*?)\\\)|\\\[(.*?)\\\])</\1>', re.DOTALL)


def on_page_content(text: str, **_: Any) -> str:
    """Replace every formula of a page."""
    return FORMULA.sub(_convert, text)


def _convert(found: re.Match[str]) -> str:
    tag, inline, display = found.groups()
    formula = html.unescape(inline if inline is not None else display).strip()
    formula = re.sub(r"\\operatorname\{(\w+)\}", r"\\mathrm{\1}", formula)
    math = convert(formula, display="block" if display is not None else "inline")
    return f'<{tag} class="formula">{math}</{tag}>'
