"""Text to numbers and back. A vocabulary is saved as JSON or as a sentencepiece model: nothing that runs."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from regard.bounds import parse_json
from regard.errors import wrong
from regard.tasks.data.segmentation import SPACE, Segments, joined, segmenter

PADDING, UNKNOWN, BEGIN, END = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
UNSEEN = "⁇"  # what an unknown token reads as
FORMAT = 1
USUAL = 8000  # tokens

Kind = Literal["word", "blank", "character", "jieba", "bpe", "unigram"]


@dataclass(frozen=True, slots=True)
class VocabularyConfig:
    """How text is cut into tokens, and how many different ones there may be."""

    kind: Kind = "bpe"
    size: int | None = None  # at most; exactly, with bpe and unigram; none: 8000, or all that the text has
    minimum: int = 1  # times a token must occur to be known; words and characters only
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.most <= len(SPECIAL):
            raise wrong("size", self.size, f"more than the {len(SPECIAL)} special tokens", f"use {USUAL}, say")

    @property
    def most(self) -> int:
        """The size, or the usual one where none is wanted."""
        return USUAL if self.size is None else self.size


class Vocabulary(ABC):
    """Numbers for tokens: 0 padding, 1 unknown, 2 begin, 3 end, then the tokens themselves."""

    kind: str
    lowercase: bool

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The numbers of a text, with neither begin nor end. What is not known is UNKNOWN."""

    @abstractmethod
    def decode(self, numbers: Iterable[int]) -> str:
        """The text up to the first END. Padding and begin are left out; an unknown token reads ⁇."""

    @abstractmethod
    def tokens(self, numbers: Iterable[int]) -> list[str]:
        """What each number stands for, for pictures."""

    @abstractmethod
    def unknown(self, text: str) -> list[str]:
        """The tokens of a text that have no number."""

    @abstractmethod
    def save(self, folder: Path, name: str) -> None: ...

    def lost(self, text: str) -> list[str]:
        """The characters of a text that it does not give back, though they are known: ▁ stands for a blank."""
        return [SPACE] if SPACE in text and self.kind not in ("blank", "character") else []

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Many texts at once, which may be faster."""
        return [self.encode(text) for text in texts]

    def cased(self, text: str) -> str:
        return text.lower() if self.lowercase else text


def content_of(numbers: Iterable[int]) -> list[int]:
    """The numbers between begin and end."""
    kept = []
    for number in numbers:
        if number == END:
            break
        if number not in (PADDING, BEGIN):
            kept.append(int(number))
    return kept


class Tokens(Vocabulary):
    """A list of words or characters.

    >>> text = Tokens(["▁hello", ",", "▁world"], "word")
    >>> text.encode("hello, world!")
    [4, 5, 6, 1]
    >>> text.decode([2, 4, 5, 6, 3, 0])
    'hello, world'
    """

    def __init__(self, known: Sequence[str], kind: Segments, *, lowercase: bool = False) -> None:
        self.known = tuple(known)
        self.kind: Segments = kind
        self.lowercase = lowercase
        self.segment = segmenter(kind)

    @cached_property
    def numbers(self) -> dict[str, int]:
        # Text that spells a special token must not become one, so only the tokens of texts are looked up.
        return {token: number for number, token in enumerate(self.known, start=len(SPECIAL))}

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.known)

    def encode(self, text: str) -> list[int]:
        return [self.numbers.get(token, UNKNOWN) for token in self.segment(self.cased(text))]

    def decode(self, numbers: Iterable[int]) -> str:
        unseen = SPACE + UNSEEN if self.kind in ("word", "jieba") else UNSEEN
        content = content_of(numbers)
        return joined([unseen if number == UNKNOWN else self.token(number) for number in content], self.kind)

    def tokens(self, numbers: Iterable[int]) -> list[str]:
        return [self.token(number) for number in numbers]

    def token(self, number: int) -> str:
        return SPECIAL[number] if number < len(SPECIAL) else self.known[number - len(SPECIAL)]

    def unknown(self, text: str) -> list[str]:
        return [token for token in self.segment(self.cased(text)) if token not in self.numbers]

    def save(self, folder: Path, name: str) -> None:
        values = {"kind": self.kind, "lowercase": self.lowercase, "tokens": self.known}
        write_facts(folder, name, values)


def count_tokens(texts: Iterable[str], config: VocabularyConfig) -> Tokens:
    """The most frequent tokens of the texts, of equally frequent ones the first by spelling."""
    if config.kind not in get_args(Segments):
        raise wrong("kind", config.kind, f"one of {', '.join(get_args(Segments))}", "use train_pieces for it")
    kind: Segments = config.kind  # type: ignore[assignment]  # just checked
    empty = Tokens((), kind, lowercase=config.lowercase)
    counts = Counter(token for text in texts for token in empty.segment(empty.cased(text)))
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    known = [token for token in ranked if counts[token] >= config.minimum]
    return Tokens(known[: config.most - len(SPECIAL)], kind, lowercase=config.lowercase)


def write_facts(folder: Path, name: str, values: dict[str, Any]) -> None:
    text = json.dumps({"format": FORMAT} | values, ensure_ascii=False, indent=0)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def read_facts(folder: Path, name: str) -> dict[str, Any]:
    """What `write_facts` wrote, or one sentence."""
    path = folder / f"{name}.json"
    try:
        values = dict(parse_json(path.read_text(encoding="utf-8")))
        version, _ = values["format"], values["kind"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        fix = "check the run folder, or restore the file from a copy"
        got = f"{path}, which cannot be read ({type(error).__name__})"
        raise wrong("vocabulary", got, "a vocabulary that regard saved", fix) from None
    if version != FORMAT:
        fix = "use the version of regard that wrote it"
        raise wrong("vocabulary", f"{path} of format {version}", f"format {FORMAT}", fix)
    return values
