"""Text in words that know where they stand."""

import re
from typing import NamedTuple

WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|\w|[^\w\s]")


class Word(NamedTuple):
    """A word or mark and the characters of the text that it covers."""

    text: str
    begin: int
    end: int


def split_words(text: str) -> list[Word]:
    """Words, numbers and marks, in the order of the text.

    >>> [word.text for word in split_words("In 1,234 B.C., she's")]
    ['In', '1,234', 'B', '.', 'C', '.', ',', 'she', "'", 's']
    """
    return [Word(found.group(), *found.span()) for found in WORD.finditer(text)]
