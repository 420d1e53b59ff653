"""Words, and their ids. An unknown word has an id by its spelling, the same wherever it stands."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import get_args

from regard.datasets.bounds import get_bound
from regard.datasets.plain_files import read_json
from regard.errors import wrong
from regard.tasks.data.words import Word, WordCut, find_words

FILE = "words.json"
PADDING = 0
FORMAT = 1


class Lexicon:
    """Ids of known words, in lower case, then `spellings` ids that unknown words share by a hash.

    Two unknown words seldom have the same id, so that a name in a question is found in the passage although it is
    unknown.

    >>> lexicon = Lexicon(["cat", "sat"], spellings=5)
    >>> lexicon.encode(["Cat", "sat", "xyzzy"]) == [1, 2, lexicon.encode(["XYZZY"])[0]]
    True
    """

    def __init__(self, known: Sequence[str], *, spellings: int = 500, cut: WordCut = "character") -> None:
        self.known, self.spellings, self.cut = tuple(known), spellings, cut

    def __len__(self) -> int:
        return 1 + len(self.known) + self.spellings

    @cached_property
    def ids(self) -> dict[str, int]:
        return {word: id for id, word in enumerate(self.known, start=1)}

    def split(self, text: str) -> list[Word]:
        """Return the words of a text."""
        return find_words(text, self.cut)

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return the ids of words."""
        return [self.ids.get(word.lower()) or self.hash_word(word.lower()) for word in words]

    def hash_word(self, word: str) -> int:
        """Return the id of an unknown word."""
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        return 1 + len(self.known) + int.from_bytes(digest) % self.spellings

    def save(self, folder: Path) -> None:
        """Write the words to a run folder."""
        values = {"format": FORMAT, "spellings": self.spellings, "cut": self.cut, "words": self.known}
        (folder / FILE).write_text(json.dumps(values, ensure_ascii=False, indent=0), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Lexicon":
        """Read what `save` wrote."""
        try:
            values = read_json(folder / FILE)
            cut = values.get("cut", "character")  # which older versions did not write
            if values["format"] != FORMAT or cut not in get_args(WordCut):
                raise ValueError
            spellings = int(values["spellings"])
            if not 1 <= spellings <= get_bound("run folder", "number"):
                raise ValueError
            return cls(list(map(str, values["words"])), spellings=spellings, cut=cut)
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            fix = "check the run folder, or restore the file from a copy"
            raise wrong("words", f"{folder / FILE}, which cannot be read", "a list that regard saved", fix) from None
