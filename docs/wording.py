"""The code of Chinese pages: the blocks of the English page with their words in Chinese, and so their figures.

A Chinese page ends with its words, in a comment `<!-- words: … -->` that a reader does not see: a whole string or a
whole comment of the code on each line. Our own drawings get `language="zh"`, and matplotlib's a font that has Chinese.
All else stays as it is.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

import yaml

LIST = re.compile(r"^<!-- words:\n(.*?)^-->\n", re.MULTILINE | re.DOTALL)
WORDS = re.compile(r"""(?P<mark>["'])(?P<string>(?:(?!(?P=mark)).)+)(?P=mark)|# (?P<comment>\S.*)$""", re.MULTILINE)
PLAIN = "from matplotlib.figure import Figure\n"
WITH_FONT = f"{PLAIN}from regard.inspect.draw.fonts import add_chinese_font\n\nadd_chinese_font()\n"
DRAWINGS = "regard.inspect.draw."
SITE = re.compile(r"\w+(?:\.\w+)+")  # a part of a model, as `layers.0.attention`
WORD_AND_WEIGHT = re.compile(r"\S+  \d\.\d\d")  # above each picture of an overlay
LATIN = re.compile(r"[A-Za-z]{3,}\b(?!\()")  # a word, unless it is called
HAN = re.compile(r"[\u4e00-\u9fff]")
SPELLED = re.compile(r"U\+[0-9A-F]{4}|no font here can write|本机字体无法书写")
# Words of figures that are the same in both languages: names, and what a reader types.
NAMES = {
    "argmax", "Bahdanau", "concat", "cosine", "dot", "entmax", "general", "Gumbel", "Lengths", "local-m", "local-p",
    "Luong", "PostNorm", "PreNorm", "scaled-dot", "softmax", "sparsemax",
}  # fmt: skip


def split_words(text: str) -> tuple[dict[str, str], str]:
    """Return the words of a page, and the page without them."""
    found = LIST.search(text)
    words: dict[str, Any] = yaml.safe_load(found[1]) if found else {}
    return {str(key): str(value) for key, value in words.items()}, LIST.sub("", text)


def translate_code(code: str, words: dict[str, str]) -> str:
    """Return a block with these words, which draws in Chinese."""
    told = pass_language(code).replace(".picture", '.draw(language="zh")')
    whole = replace_words(told, words)
    is_chinese = any(map(HAN.search, words.values()))  # a figure may show what an earlier block named
    return whole.replace(PLAIN, WITH_FONT) if is_chinese else whole


def replace_words(code: str, words: dict[str, str]) -> str:
    """Return the code with its strings and comments in Chinese, if they are among the words.

    >>> replace_words('axis.set(xlabel="keys")  # below', {"keys": "键", "below": "下方"})
    'axis.set(xlabel="键")  # 下方'
    """

    def replace(found: re.Match[str]) -> str:
        word = found["string"] or found["comment"]
        return found[0].replace(word, words.get(word, word))

    return WORDS.sub(replace, code)


def find_unused(blocks: list[str], words: dict[str, str]) -> list[str]:
    """Return the words that stand in no block: the code changed, or they are misspelled."""
    there = {found["string"] or found["comment"] for block in blocks for found in WORDS.finditer(block)}
    return sorted(set(words) - there)


def pass_language(code: str) -> str:
    r"""Return the code with the language in every call of one of our drawings.

    >>> print(pass_language("from regard.inspect.draw.positions import draw_positions\nfigure = draw_positions(table)"))
    from regard.inspect.draw.positions import draw_positions
    figure = draw_positions(table, language="zh")
    """
    lines = code.encode().splitlines(keepends=True)
    for line, column in sorted(find_ends(code), reverse=True):
        before, after = lines[line][:column], lines[line][column:]
        opening = b"".join(lines[:line]) + before
        is_spread = opening.rstrip().endswith(b",")  # each argument has its line
        lines[line] = (before + b'    language="zh",\n' + before if is_spread else before + b', language="zh"') + after
    return b"".join(lines).decode()


def find_ends(code: str) -> Iterator[tuple[int, int]]:
    """Yield line and column of the parenthesis that closes each call of a drawing that the block imports."""
    nodes = list(ast.walk(ast.parse(code)))
    modules = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    ours = {alias.name for node in modules if (node.module or "").startswith(DRAWINGS) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ours:
            yield (node.end_lineno or 1) - 1, (node.end_col_offset or 1) - 1


def find_english(figure: Any) -> list[str]:
    """Return titles, names of axes and legends of a figure that are neither Chinese nor names nor the model's words."""
    texts = [figure.get_suptitle(), *(text.get_text() for text in figure.texts)]
    for axes in figure.axes:
        legend = axes.get_legend()
        texts += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()]
        texts += [text.get_text() for text in legend.get_texts()] if legend else []
    unknown = {text for text in texts if set(LATIN.findall(SITE.sub("", text.replace("\n", "")))) - NAMES}
    return sorted(text for text in unknown if not HAN.search(text) and not WORD_AND_WEIGHT.fullmatch(text))


def find_unwritten(figure: Any) -> list[str]:
    """Return what stands in a figure for characters that no font of this machine has: their numbers."""
    from matplotlib.text import Text

    return sorted({text.get_text() for text in figure.findobj(Text) if SPELLED.search(text.get_text())})
