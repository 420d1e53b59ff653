"""Sentence pairs as token ids, and batches of them as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy
from torch import Tensor

from regard.tasks.data import BEGIN, END, SentencePair, Vocabularies, Vocabulary, filter_by_length
from regard.tasks.data.batches import pad_rows
from regard.tasks.data.rows import Array, Rows, choose_dtype


class TranslationBatch(NamedTuple):
    """Padded sentences. A source ends with END; a target begins with BEGIN too."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


class EncodedPairs(NamedTuple):
    """Pairs as token ids, each side closed by END."""

    sources: Rows
    targets: Rows
    notes: Sequence[str] = ()

    @property
    def lengths(self) -> Array:
        """Lengths of target and source, for batches in which both are alike."""
        return numpy.stack((self.targets.lengths, self.sources.lengths), axis=1)

    def select(self, chosen: Array | slice) -> "EncodedPairs":
        """Return some of the pairs."""
        return self._replace(sources=self.sources.select(chosen), targets=self.targets.select(chosen))

    def collate(self, chosen: Sequence[int]) -> TranslationBatch:
        """Return some of the pairs as a batch."""
        sources, targets = ([rows[index] for index in chosen] for rows in (self.sources, self.targets))
        return TranslationBatch(*pad_rows(sources), *pad_rows(targets, BEGIN))


def encode_pairs(pairs: Sequence[SentencePair], vocabularies: Vocabularies, limit: int) -> EncodedPairs:
    """Encode the pairs whose sides have at most `limit` tokens, with a note on the others."""
    sources, targets = (
        Rows.flatten(encode_texts([pair[side] for pair in pairs], vocabulary), choose_dtype(len(vocabulary)))
        for side, vocabulary in enumerate(vocabularies)
    )
    return drop_long_pairs(EncodedPairs(sources, targets), limit)


def drop_long_pairs(encoded: EncodedPairs, limit: int) -> EncodedPairs:
    """Return the pairs whose sides have at most `limit` tokens without END, with a note on the others."""
    kept, notes = filter_by_length(encoded.lengths - 1, limit)
    chosen = encoded if len(kept) == len(encoded.sources) else encoded.select(kept)
    return chosen._replace(notes=(*encoded.notes, *notes))


def encode_texts(texts: Sequence[str], vocabulary: Vocabulary, most: int | None = None) -> list[list[int]]:
    """Return at most `most` token ids of each text, closed by END, so that an empty text has something to attend to."""
    return [[*ids[:most], END] for ids in vocabulary.encode_all(texts)]
