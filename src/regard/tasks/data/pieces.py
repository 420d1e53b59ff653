"""Pieces of words by sentencepiece: byte-pair encoding (Sennrich et al. 2016) and unigram (Kudo 2018)."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

from regard.errors import InputError, import_package, wrong
from regard.tasks.data.vocabulary import (
    BEGIN,
    END,
    PADDING,
    SPECIAL,
    UNKNOWN,
    UNSEEN,
    Vocabulary,
    VocabularyConfig,
    extract_content,
    write_metadata,
)

MANY = 1000  # texts that are worth a second thread
LONGEST = 4192  # bytes of a text that sentencepiece learns from
RESERVED = re.compile("|".join(map(re.escape, SPECIAL)))


class SentencePieceVocabulary(Vocabulary):
    """A sentencepiece model, held as the bytes of its file."""

    def __init__(self, model: bytes, kind: str, *, lowercase: bool = False) -> None:
        self.model = model
        self.kind = kind
        self.lowercase = lowercase

    @cached_property
    def processor(self) -> Any:
        try:
            return import_sentencepiece().SentencePieceProcessor(model_proto=self.model)
        except RuntimeError:
            fix = "restore the .model file from a copy"
            got = f"{len(self.model)} bytes that are not a sentencepiece model"
            raise wrong("vocabulary", got, "a model that sentencepiece trained", fix) from None

    def __len__(self) -> int:
        return int(self.processor.get_piece_size())

    def apply_case(self, text: str) -> str:
        # sentencepiece keeps tabs for itself: one in a text would be unknown.
        return super().apply_case(text).replace("\t", " ")

    def encode(self, text: str) -> list[int]:
        return list(self.processor.encode(self.apply_case(text)))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        threads = min(2, os.cpu_count() or 1) if len(texts) >= MANY else 1
        return list(self.processor.encode([self.apply_case(text) for text in texts], num_threads=threads))

    def decode(self, numbers: Iterable[int]) -> str:
        return str(self.processor.decode(extract_content(numbers)))

    def get_tokens(self, numbers: Iterable[int]) -> list[str]:
        return [str(self.processor.id_to_piece(int(number))) for number in numbers]

    def find_unknown(self, text: str) -> list[str]:
        pieces = self.processor.encode(self.apply_case(text), out_type=str)
        return [piece for piece in pieces if self.processor.piece_to_id(piece) == UNKNOWN]

    def save(self, folder: Path, name: str) -> None:
        (folder / f"{name}.model").write_bytes(self.model)
        write_metadata(folder, name, {"kind": self.kind, "lowercase": self.lowercase})

    def to_bytes(self) -> bytes:
        return f"{self.kind} {self.lowercase} ".encode() + self.model


def train_pieces(texts: Sequence[str], config: VocabularyConfig) -> SentencePieceVocabulary:
    """Learn pieces from texts. Text is not normalized: what goes in comes out, full-width signs too; a tab is a blank,
    and so is ▁: `Vocabulary.find_lost_characters` finds it.
    """

    def list_parts() -> Iterator[str]:
        return (part for text in texts for part in split_learnable(text.lower() if config.lowercase else text))

    try:
        model = train_sentencepiece(list_parts(), config.kind, config.max_size)
    except RuntimeError as error:
        limit = parse_max_size(str(error))
        if limit is None or config.size is not None:
            raise size_error(config.max_size, str(error)) from None
        model = train_sentencepiece(list_parts(), config.kind, limit)
    return SentencePieceVocabulary(model, config.kind, lowercase=config.lowercase)


def split_learnable(text: str) -> Iterator[str]:
    """Split a text so that sentencepiece learns from all of it: it leaves out one with a tab or a NUL, of over 4,192
    bytes, and what is spelt as a special token.
    """
    text = RESERVED.sub(lambda found: f"{found[0][:-1]} >", text.replace("\t", " ").replace("\0", " "))
    if len(text.encode()) <= LONGEST:
        yield text
    else:
        yield from (text[start : start + LONGEST // 4] for start in range(0, len(text), LONGEST // 4))


def train_sentencepiece(texts: Iterable[str], kind: str, size: int) -> bytes:
    """Train a sentencepiece model of `size` pieces, and return its file."""
    output = BytesIO()
    import_sentencepiece().SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=output,
        model_type=kind,
        vocab_size=size,
        pad_id=PADDING,
        unk_id=UNKNOWN,
        bos_id=BEGIN,
        eos_id=END,
        unk_surface=UNSEEN,
        character_coverage=1.0,
        normalization_rule_name="identity",
        num_threads=1,  # the pieces must not depend on the machine
        minloglevel=2,
    )
    return output.getvalue()


def parse_max_size(message: str) -> int | None:
    """Return the largest size that the text allows, from sentencepiece's message, or none."""
    found = re.search(r"value <= (\d+)", message)
    return int(found[1]) if found else None


def size_error(size: int, message: str) -> InputError:
    """Return the error for a size that the text does not allow, from sentencepiece's message."""
    most = parse_max_size(message)
    lowest = re.search(r"required_chars\D*(\d+) vs (\d+)", message)
    if most:
        fix = f"use size={most} or less, or none for as many as there are"
        return wrong("vocabulary.size", size, f"at most {most} for this text", fix)
    if lowest:
        limit = int(lowest[2])
        fix = f"use size={limit} or more, or kind=character"
        return wrong("vocabulary.size", size, f"at least {limit}, one for each character", fix)
    return wrong("vocabulary", f"'{message.strip()}'", "text that sentencepiece can learn from", "check the data")


def import_sentencepiece() -> Any:
    """Return the package, or raise one sentence that says how to install it."""
    return import_package("sentencepiece", "text", otherwise=", or use kind=word or kind=character")
