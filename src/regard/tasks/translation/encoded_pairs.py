"""Pairs as numbers, and batches of them as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.tasks.data import BEGIN, END, PADDING, SentencePair, Vocabularies, Vocabulary, filter_by_length, pad


class TranslationBatch(NamedTuple):
    """Sentences side by side, padded. A source has END behind it, a target BEGIN before it too."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


class EncodedPairs(NamedTuple):
    """Pairs in the numbers of their vocabularies, each side closed by END."""

    sources: Sequence[list[int]]
    targets: Sequence[list[int]]
    notes: Sequence[str] = ()

    @property
    def lengths(self) -> list[tuple[int, int]]:
        """Of target and source, for batches in which both are alike."""
        return [(len(target), len(source)) for source, target in zip(self.sources, self.targets, strict=True)]

    def collate(self, chosen: Sequence[int]) -> TranslationBatch:
        """Some of the pairs as tensors."""
        sources = [self.sources[index] for index in chosen]
        targets = [[BEGIN, *self.targets[index]] for index in chosen]
        return TranslationBatch(*pad_rows(sources), *pad_rows(targets))


def encode_pairs(pairs: Sequence[SentencePair], vocabularies: Vocabularies, limit: int) -> EncodedPairs:
    """Every pair whose sides have at most `limit` tokens, and a note on the others."""
    sources = encode_texts([pair.source for pair in pairs], vocabularies.source)
    targets = encode_texts([pair.target for pair in pairs], vocabularies.target)
    lengths = [(len(source) - 1, len(target) - 1) for source, target in zip(sources, targets, strict=True)]
    kept, notes = filter_by_length(lengths, limit)
    return EncodedPairs([sources[index] for index in kept], [targets[index] for index in kept], notes)


def encode_texts(texts: Sequence[str], vocabulary: Vocabulary, most: int | None = None) -> list[list[int]]:
    """Texts in numbers, at most so many, with END behind each: a text of nothing still has something to look at."""
    return [[*numbers[:most], END] for numbers in vocabulary.encode_all(texts)]


def pad_rows(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Sentences as one tensor, and their lengths."""
    return pad(rows, PADDING), torch.tensor([len(row) for row in rows])


def group_by_length(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """All items, the longest first, in groups that have at most `budget` tokens with their padding."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = lengths[groups[-1][0]] if groups else 0
        if not groups or longest * (len(groups[-1]) + 1) > budget:
            groups.append([])
        groups[-1].append(index)
    return groups
