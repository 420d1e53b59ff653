"""The words of a text, for all tasks: Chinese and Japanese by character or by rjieba, other scripts by word."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import Literal, NamedTuple

from regard.errors import import_package
from regard.tasks.data.segmentation import UNSPACED, has_unspaced

WordCut = Literal["character", "jieba"]
FIRST_MARK, LAST_MARK = 0x300, 0x11FFF  # where most marks on letters lie
REPEATED = 2  # times that a word occurs on average, in text that something can be learned from
ENOUGH = 40  # words from which on that is worth a note
gap = re.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")


class Word(NamedTuple):
    """A word or punctuation mark, and the characters of the text that it covers."""

    text: str
    begin: int
    end: int


def find_words(text: str, cut: WordCut = "character") -> list[Word]:
    """Return words, numbers and punctuation marks, in the order of the text.

    >>> [word.text for word in find_words("In 1,234 B.C., she's 在北京。")]
    ['In', '1,234', 'B', '.', 'C', '.', ',', 'she', "'", 's', '在', '北', '京', '。']
    """
    letters, marks = f"[^\\W\\d_{UNSPACED}]", list_marks()
    pattern = compile_pattern(f"\\d+(?:[.,]\\d+)*|[{UNSPACED}]+|(?:{letters}[{marks}]*)+|\\w|[^\\w\\s]")
    return split_matches(pattern.finditer(text), cut)


def normalize_words(text: str, cut: WordCut = "character") -> str:
    """Return the words of a text in lower case with blanks between, without punctuation.

    >>> normalize_words("What's on the T-shirt?"), normalize_words("红色的圆在哪里？")
    ("what's on the t-shirt", '红 色 的 圆 在 哪 里')
    """
    pattern = compile_pattern(f"[{UNSPACED}]+|(?:[^\\W{UNSPACED}]|['{list_marks()}-])+")
    words = split_matches(pattern.finditer(text.lower()), cut)
    return " ".join(word.text for word in words if any(map(str.isalnum, word.text)))


def join_words(text: str) -> str:
    """Return a text without the blanks between characters of scripts that have none.

    >>> join_words("一 只 狗 in the 公 园")
    '一只狗 in the 公园'
    """
    return gap.sub("", text)


def split_matches(found: Iterable[re.Match[str]], cut: WordCut) -> list[Word]:
    """Return what a pattern found; runs of a script without blanks are cut into characters or words."""
    split: Callable[[str], Iterable[str]] = import_package("rjieba", "zh").cut if cut == "jieba" else list
    words: list[Word] = []
    for match in found:
        if not has_unspaced(match.group()[0]):
            words.append(Word(match.group(), *match.span()))
            continue
        begin = match.start()
        for part in split(match.group()):
            words.append(Word(part, begin, begin + len(part)))
            begin += len(part)
    return words


@cache
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern, which is kept."""
    return re.compile(pattern)


@cache
def list_marks() -> str:
    """Return the marks on letters, for a class of a pattern: `re` does not count them as parts of a word."""
    characters = map(chr, range(FIRST_MARK, LAST_MARK))
    return "".join(character for character in characters if unicodedata.category(character)[0] == "M")


def describe_repetition(noun: str, words: Iterable[str]) -> list[str]:
    """Return a note if words hardly repeat: then a model can learn nothing about most of them.

    >>> describe_repetition("captions", ["a"] * 30 + ["b"] * 20)
    []
    >>> describe_repetition("captions", map(str, range(50)))[0].partition(":")[0]
    'the 50 words of the captions are 50 different ones, most of which occur once'
    """
    counts = Counter(words)
    total = sum(counts.values())
    if total < ENOUGH or total >= REPEATED * len(counts):
        return []
    text = f"the {total:,} words of the {noun} are {len(counts):,} different ones, most of which occur once"
    return [f"{text}: little can be learned about them; check how the text is cut into words, or add more of it"]
