"""Words as numbers. A word that is not known has a number by its spelling, the same wherever it stands."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from regard.bounds import parse_json
from regard.errors import wrong

FILE = "words.json"
PADDING = 0
FORMAT = 1


class Lexicon:
    """Known words, in lower case, then `spellings` numbers that unknown words share by a hash.

    Two unknown words are seldom taken for each other, and a name in a question is found in the passage though nobody
    knows what it means.

    >>> lexicon = Lexicon(["cat", "sat"], spellings=5)
    >>> lexicon.numbers(["Cat", "sat", "xyzzy"]) == [1, 2, lexicon.numbers(["XYZZY"])[0]]
    True
    """

    def __init__(self, known: Sequence[str], *, spellings: int = 500) -> None:
        self.known, self.spellings = tuple(known), spellings

    def __len__(self) -> int:
        return 1 + len(self.known) + self.spellings

    @cached_property
    def places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.known, start=1)}

    def numbers(self, words: Iterable[str]) -> list[int]:
        return [self.places.get(word.lower()) or self.by_spelling(word.lower()) for word in words]

    def by_spelling(self, word: str) -> int:
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        return 1 + len(self.known) + int.from_bytes(digest) % self.spellings

    def save(self, folder: Path) -> None:
        values = {"format": FORMAT, "spellings": self.spellings, "words": self.known}
        (folder / FILE).write_text(json.dumps(values, ensure_ascii=False, indent=0), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Lexicon":
        """What `save` wrote, or one sentence."""
        try:
            values = parse_json((folder / FILE).read_text(encoding="utf-8"))
            if values["format"] != FORMAT:
                raise ValueError
            return cls(list(map(str, values["words"])), spellings=int(values["spellings"]))
        except (OSError, ValueError, KeyError, TypeError):
            fix = "check the run folder, or restore the file from a copy"
            raise wrong("words", f"{folder / FILE}, which cannot be read", "a list that regard saved", fix) from None
