"""Pieces of words by sentencepiece: byte-pair encoding (Sennrich et al. 2016) and unigram (Kudo 2018)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

from regard.errors import InputError, missing, wrong
from regard.tasks.data.vocabulary import (
    BEGIN,
    END,
    PADDING,
    SPECIAL,
    UNKNOWN,
    UNSEEN,
    Vocabulary,
    VocabularyConfig,
    content_of,
    write_facts,
)

LONGEST = 4192  # bytes of a text that sentencepiece learns from
RESERVED = re.compile("|".join(map(re.escape, SPECIAL)))


class Pieces(Vocabulary):
    """A sentencepiece model, held as the bytes of its file."""

    def __init__(self, model: bytes, kind: str, *, lowercase: bool = False) -> None:
        self.model = model
        self.kind = kind
        self.lowercase = lowercase

    @cached_property
    def processor(self) -> Any:
        try:
            return sentencepiece().SentencePieceProcessor(model_proto=self.model)
        except RuntimeError:
            fix = "restore the .model file from a copy"
            got = f"{len(self.model)} bytes that are no sentencepiece model"
            raise wrong("vocabulary", got, "a model that sentencepiece trained", fix) from None

    def __len__(self) -> int:
        return int(self.processor.get_piece_size())

    def cased(self, text: str) -> str:
        # sentencepiece keeps tabs for itself: one in a text would be unknown.
        return super().cased(text).replace("\t", " ")

    def encode(self, text: str) -> list[int]:
        return list(self.processor.encode(self.cased(text)))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self.processor.encode([self.cased(text) for text in texts], num_threads=1))

    def decode(self, numbers: Iterable[int]) -> str:
        return str(self.processor.decode(content_of(numbers)))

    def tokens(self, numbers: Iterable[int]) -> list[str]:
        return [str(self.processor.id_to_piece(int(number))) for number in numbers]

    def unknown(self, text: str) -> list[str]:
        pieces = self.processor.encode(self.cased(text), out_type=str)
        return [piece for piece in pieces if self.processor.piece_to_id(piece) == UNKNOWN]

    def save(self, folder: Path, name: str) -> None:
        (folder / f"{name}.model").write_bytes(self.model)
        write_facts(folder, name, {"kind": self.kind, "lowercase": self.lowercase})


def train_pieces(texts: Sequence[str], config: VocabularyConfig) -> Pieces:
    """Learns pieces from texts. Text is not normalized: what goes in comes out, full-width signs too; a tab is a blank,
    and so is ▁, which `Vocabulary.lost` tells.
    """
    cased = [part for text in texts for part in learnable(text.lower() if config.lowercase else text)]
    try:
        model = learned(cased, config.kind, config.most)
    except RuntimeError as error:
        limit = highest(str(error))
        if limit is None or config.size is not None:
            raise refused(config.most, str(error)) from None
        model = learned(cased, config.kind, limit)
    return Pieces(model, config.kind, lowercase=config.lowercase)


def learnable(text: str) -> Iterator[str]:
    """A text as sentencepiece learns from all of it: it leaves out one with a tab or a NUL, one of more than 4,192
    bytes, and what is spelt as a special token.
    """
    text = RESERVED.sub(lambda found: f"{found[0][:-1]} >", text.replace("\t", " ").replace("\0", " "))
    if len(text.encode()) <= LONGEST:
        yield text
    else:
        yield from (text[start : start + LONGEST // 4] for start in range(0, len(text), LONGEST // 4))


def learned(texts: Iterable[str], kind: str, size: int) -> bytes:
    """The file of a sentencepiece model with so many pieces."""
    output = BytesIO()
    sentencepiece().SentencePieceTrainer.train(
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


def highest(message: str) -> int | None:
    """The most pieces that a text has, where sentencepiece says that it has too few."""
    found = re.search(r"value <= (\d+)", message)
    return int(found[1]) if found else None


def refused(size: int, message: str) -> InputError:
    """What sentencepiece says about a size that the text does not allow, in our words."""
    most = highest(message)
    lowest = re.search(r"required_chars\D*(\d+) vs (\d+)", message)
    if most:
        fix = f"use size={most} or less, or none for as many as there are"
        return wrong("vocabulary.size", size, f"at most {most} for this text", fix)
    if lowest:
        limit = int(lowest[2])
        fix = f"use size={limit} or more, or kind=character"
        return wrong("vocabulary.size", size, f"at least {limit}, one for each character", fix)
    return wrong("vocabulary", f"'{message.strip()}'", "text that sentencepiece can learn from", "check the data")


def sentencepiece() -> Any:
    try:
        import sentencepiece as package
    except ImportError:
        raise missing("sentencepiece", "text", ", or use kind=word or kind=character") from None
    return package
