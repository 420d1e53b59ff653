"""Text to words and back. What is split can be joined again without loss."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Literal

from regard.errors import import_package

SegmentKind = Literal["word", "blank", "character", "jieba"]
# The characters of Chinese and Japanese, which are written without blanks: radicals, ideographs, kana.
UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
SPACE = "▁"  # before a word that follows a blank, as sentencepiece writes it


def get_segmenter(kind: SegmentKind) -> Callable[[str], list[str]]:
    """Return the function that splits text into tokens.

    - `word`: letters that belong together; every sign, every digit and every Chinese character is its own
    - `blank`: what lies between blanks, for text that is already tokenized
    - `character`: every character, blanks too
    - `jieba`: Chinese words, by rjieba
    """
    match kind:
        case "word":
            return split_words
        case "blank":
            return lambda text: text.split()
        case "character":
            return list
        case "jieba":
            return load_jieba()


def join_tokens(tokens: Sequence[str], kind: SegmentKind) -> str:
    """Return the text of tokens: the inverse of `get_segmenter(kind)`, runs of blanks aside."""
    if kind == "blank":
        return " ".join(tokens)
    text = "".join(tokens)
    return text if kind == "character" else text.replace(SPACE, " ").removeprefix(" ")


def split_words(text: str) -> list[str]:
    """Return words and signs, each with a mark if a blank stood before it. Digits are signs: most numbers are rare, and
    one that was never seen can still be written again.

    >>> split_words("I'm 42, 你好!")
    ['▁I', "'", 'm', '▁4', '2', ',', '▁你', '好', '!']
    """
    return [token for part in text.split(" ") for token in mark_first(split_chunk(part))]


@lru_cache(maxsize=2**17)
def split_chunk(text: str) -> tuple[str, ...]:
    """Return the words and signs of a text without blanks. There is a cache because words repeat."""
    return tuple("".join(group) for _, group in groupby(text, key=WordGroupKey()))


def mark_first(parts: Sequence[str]) -> list[str]:
    """Return the tokens with a mark before the first: a blank stood there."""
    return [SPACE + parts[0], *parts[1:]] if parts else []


class WordGroupKey:
    """A key for `groupby`: letters with letters; any other character with none."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, character: str) -> int:
        if not belongs_to_word(character):
            self.count += 1
            return self.count
        return 0


@lru_cache(maxsize=2**16)
def belongs_to_word(character: str) -> bool:
    """Return whether this is a letter or a mark on one, but not of a script that writes words without blanks."""
    return unicodedata.category(character)[0] in "LM" and not has_unspaced(character)


def has_unspaced(text: str) -> bool:
    """Return whether a text has characters of a script that is written without blanks."""
    return re.search(f"[{UNSPACED}]", text) is not None


def load_jieba() -> Callable[[str], list[str]]:
    """Return a function that splits Chinese text into words."""
    cut = import_package("rjieba", "zh").cut

    def segment(text: str) -> list[str]:
        return [token for part in text.split(" ") for token in mark_first(cut(part))]

    return segment
