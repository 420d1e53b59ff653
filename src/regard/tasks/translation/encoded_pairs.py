"""Sentence pairs as token ids, and batches of them as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from regard.tasks.data import BEGIN, END, SentencePair, Vocabularies, Vocabulary, filter_by_length
from regard.tasks.data.batches import pad_rows


class TranslationBatch(NamedTuple):
    """Padded sentences. A source ends with END; a target begins with BEGIN too."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


class EncodedPairs(NamedTuple):
    """Pairs as token ids, each side closed by END."""

    sources: Sequence[list[int]]
    targets: Sequence[list[int]]
    notes: Sequence[str] = ()

    @property
    def lengths(self) -> list[tuple[int, int]]:
        """Lengths of target and source, for batches in which both are alike."""
        return [(len(target), len(source)) for source, target in zip(self.sources, self.targets, strict=True)]

    def collate(self, chosen: Sequence[int]) -> TranslationBatch:
        """Return some of the pairs as a batch."""
        sources = [self.sources[index] for index in chosen]
        targets = [[BEGIN, *self.targets[index]] for index in chosen]
        return TranslationBatch(*pad_rows(sources), *pad_rows(targets))


def encode_pairs(pairs: Sequence[SentencePair], vocabularies: Vocabularies, limit: int) -> EncodedPairs:
    """Encode the pairs whose sides have at most `limit` tokens, with a note on the others."""
    sources = encode_texts([pair.source for pair in pairs], vocabularies.source)
    targets = encode_texts([pair.target for pair in pairs], vocabularies.target)
    lengths = [(len(source) - 1, len(target) - 1) for source, target in zip(sources, targets, strict=True)]
    kept, notes = filter_by_length(lengths, limit)
    return EncodedPairs([sources[index] for index in kept], [targets[index] for index in kept], notes)


def encode_texts(texts: Sequence[str], vocabulary: Vocabulary, most: int | None = None) -> list[list[int]]:
    """Return at most `most` token ids of each text, closed by END, so that an empty text has something to attend to."""
    return [[*ids[:most], END] for ids in vocabulary.encode_all(texts)]
