"""The vocabularies of source and target, which may be one."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from regard.datasets.plain_files import read_bytes
from regard.datasets.text import shorten
from regard.errors import RegardError, wrong
from regard.tasks.data.pairs import SentencePair
from regard.tasks.data.pieces import SentencePieceVocabulary, train_pieces
from regard.tasks.data.segmentation import SegmentKind
from regard.tasks.data.vocabulary import (
    TokenVocabulary,
    Vocabulary,
    VocabularyConfig,
    build_token_vocabulary,
    read_metadata,
)

JOINT = "joint"


class Vocabularies(NamedTuple):
    """The vocabularies of source and target; a joint vocabulary is the same object on both sides."""

    source: Vocabulary
    target: Vocabulary

    @property
    def joint(self) -> bool:
        return self.source is self.target


def build_vocabulary(texts: Sequence[str], config: VocabularyConfig) -> Vocabulary:
    """Build a vocabulary of any kind."""
    return (
        build_token_vocabulary(texts, config) if config.kind in get_args(SegmentKind) else train_pieces(texts, config)
    )


def build_vocabularies(
    pairs: Sequence[SentencePair], source: VocabularyConfig, target: VocabularyConfig | None = None
) -> Vocabularies:
    """Build a vocabulary for each side, or without `target` a joint one."""
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    if target is None:
        shared = build_vocabulary(sources + targets, source)
        return Vocabularies(shared, shared)
    return Vocabularies(build_vocabulary(sources, source), build_vocabulary(targets, target))


def save_vocabularies(vocabularies: Vocabularies, folder: Path) -> None:
    """Write `vocabulary/` into a run folder."""
    place = folder / "vocabulary"
    place.mkdir(exist_ok=True)
    if vocabularies.joint:
        vocabularies.source.save(place, JOINT)
    else:
        vocabularies.source.save(place, "source")
        vocabularies.target.save(place, "target")


def load_vocabularies(folder: Path) -> Vocabularies:
    """Read what `save_vocabularies` wrote."""
    place = folder / "vocabulary"
    if (place / f"{JOINT}.json").is_file():
        shared = load_vocabulary(place, JOINT)
        return Vocabularies(shared, shared)
    return Vocabularies(load_vocabulary(place, "source"), load_vocabulary(place, "target"))


def load_vocabulary(folder: Path, name: str) -> Vocabulary:
    """Read one vocabulary, of the kind that its file names."""
    facts = read_metadata(folder, name)
    try:
        kind, lowercase = facts["kind"], bool(facts["lowercase"])
        if kind in get_args(SegmentKind):
            return TokenVocabulary(list(map(str, facts["tokens"])), kind, lowercase=lowercase)
        pieces = SentencePieceVocabulary(read_bytes(folder / f"{name}.model"), kind, lowercase=lowercase)
        len(pieces)  # reads the model, so that damage shows now
    except RegardError:
        raise
    except (OSError, KeyError, TypeError, ValueError) as error:
        fix = "check the run folder, or restore the file from a copy"
        got = f"{folder / name}.json with a part missing ({shorten(error)})"
        raise wrong("vocabulary", got, "a vocabulary that regard saved", fix) from None
    return pieces
