"""Text to token ids and back. A vocabulary is saved as JSON or as a sentencepiece model: nothing that runs."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from regard.datasets.plain_files import read_json
from regard.errors import wrong
from regard.tasks.data.segmentation import SPACE, SegmentKind, get_segmenter, join_tokens

PADDING, UNKNOWN, BEGIN, END = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
UNSEEN = "⁇"  # the text of an unknown token
FORMAT = 1
USUAL = 8000  # tokens

Kind = Literal["word", "blank", "character", "jieba", "bpe", "unigram"]


@dataclass(frozen=True, slots=True)
class VocabularyConfig:
    """How text is cut into tokens, and how many different ones there may be."""

    kind: Kind = "bpe"
    size: int | None = None  # at most; exactly, with bpe and unigram; none: 8000, or all that the text has
    minimum: int | None = 1  # times that a token must occur to be known; none: 5 in long texts, 1 in short ones
    lowercase: bool = False  # write all text in lower case first

    def __post_init__(self) -> None:
        if self.max_size <= len(SPECIAL):
            raise wrong("size", self.size, f"more than the {len(SPECIAL)} special tokens", f"use {USUAL}, say")

    @property
    def max_size(self) -> int:
        """The size, or the usual one if none is set."""
        return USUAL if self.size is None else self.size


class Vocabulary(ABC):
    """Token ids: 0 padding, 1 unknown, 2 begin, 3 end, then the tokens themselves."""

    kind: str
    lowercase: bool

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without BEGIN and END. Unknown tokens are UNKNOWN."""

    @abstractmethod
    def decode(self, numbers: Iterable[int]) -> str:
        """Return the text up to the first END. Padding and BEGIN are left out; an unknown token is ⁇."""

    @abstractmethod
    def get_tokens(self, numbers: Iterable[int]) -> list[str]:
        """Return the token of each id, for pictures."""

    @abstractmethod
    def find_unknown(self, text: str) -> list[str]:
        """Return the tokens of a text that are unknown."""

    @abstractmethod
    def save(self, folder: Path, name: str) -> None: ...

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return all that token ids depend on, for a fingerprint."""

    def find_lost_characters(self, text: str) -> list[str]:
        """Return the characters that decode does not return although encode accepts them: ▁ stands for a blank."""
        return [SPACE] if SPACE in text and self.kind not in ("blank", "character") else []

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts at once, which may be faster."""
        return [self.encode(text) for text in texts]

    def apply_case(self, text: str) -> str:
        return text.lower() if self.lowercase else text


def extract_content(numbers: Iterable[int]) -> list[int]:
    """Return the token ids between BEGIN and END."""
    kept = []
    for number in numbers:
        if number == END:
            break
        if number not in (PADDING, BEGIN):
            kept.append(int(number))
    return kept


class TokenVocabulary(Vocabulary):
    """A list of words or characters.

    >>> text = TokenVocabulary(["▁hello", ",", "▁world"], "word")
    >>> text.encode("hello, world!")
    [4, 5, 6, 1]
    >>> text.decode([2, 4, 5, 6, 3, 0])
    'hello, world'
    """

    def __init__(self, known: Sequence[str], kind: SegmentKind, *, lowercase: bool = False) -> None:
        self.known = tuple(known)
        self.kind: SegmentKind = kind
        self.lowercase = lowercase
        self.segment = get_segmenter(kind)

    @cached_property
    def ids(self) -> dict[str, int]:
        # Text that spells a special token must not become one, so only the tokens of texts are looked up.
        return {token: number for number, token in enumerate(self.known, start=len(SPECIAL))}

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.known)

    def encode(self, text: str) -> list[int]:
        return [self.ids.get(token, UNKNOWN) for token in self.segment(self.apply_case(text))]

    def decode(self, numbers: Iterable[int]) -> str:
        unseen = SPACE + UNSEEN if self.kind in ("word", "jieba") else UNSEEN
        content = extract_content(numbers)
        return join_tokens([unseen if number == UNKNOWN else self.get_token(number) for number in content], self.kind)

    def get_tokens(self, numbers: Iterable[int]) -> list[str]:
        return [self.get_token(number) for number in numbers]

    def get_token(self, number: int) -> str:
        return SPECIAL[number] if number < len(SPECIAL) else self.known[number - len(SPECIAL)]

    def find_unknown(self, text: str) -> list[str]:
        return [token for token in self.segment(self.apply_case(text)) if token not in self.ids]

    def save(self, folder: Path, name: str) -> None:
        values = {"kind": self.kind, "lowercase": self.lowercase, "tokens": self.known}
        write_metadata(folder, name, values)

    def to_bytes(self) -> bytes:
        return json.dumps([self.kind, self.lowercase, self.known]).encode()


def build_token_vocabulary(texts: Iterable[str], config: VocabularyConfig) -> TokenVocabulary:
    """Return the most frequent tokens of the texts, of equally frequent ones the first by spelling."""
    if config.kind not in get_args(SegmentKind):
        raise wrong("kind", config.kind, f"one of {', '.join(get_args(SegmentKind))}", "use train_pieces for it")
    kind: SegmentKind = config.kind  # type: ignore[assignment]  # just checked
    empty = TokenVocabulary((), kind, lowercase=config.lowercase)
    counts = Counter(token for text in texts for token in empty.segment(empty.apply_case(text)))
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    minimum = choose_minimum(sum(counts.values())) if config.minimum is None else config.minimum
    known = [token for token in ranked if counts[token] >= minimum]
    return TokenVocabulary(known[: config.max_size - len(SPECIAL)], kind, lowercase=config.lowercase)


def choose_minimum(tokens: int) -> int:
    """Return how often a token must occur to be known, for a text of so many tokens: little text has few of each.

    >>> choose_minimum(600), choose_minimum(20_000), choose_minimum(300_000)
    (1, 2, 5)
    """
    return 5 if tokens >= 100_000 else 2 if tokens >= 10_000 else 1


def write_metadata(folder: Path, name: str, values: dict[str, Any]) -> None:
    """Write values and the version of their format to a JSON file."""
    text = json.dumps({"format": FORMAT} | values, ensure_ascii=False, indent=0)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def read_metadata(folder: Path, name: str) -> dict[str, Any]:
    """Read what `write_metadata` wrote."""
    path = folder / f"{name}.json"
    try:
        values = read_json(path)
        version, _ = values["format"], values["kind"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        fix = "check the run folder, or restore the file from a copy"
        got = f"{path}, which cannot be read ({type(error).__name__})"
        raise wrong("vocabulary", got, "a vocabulary that regard saved", fix) from None
    if version != FORMAT:
        fix = "use the version of regard that wrote it"
        raise wrong("vocabulary", f"{path} of format {version}", f"format {FORMAT}", fix)
    return values
