"""Sentence pairs, and data sets of them."""

from typing import NamedTuple

from regard.tasks.data.dataset import Dataset, FixedDataset


class SentencePair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str

    def to_bytes(self) -> bytes:
        """Return the content, for a fingerprint."""
        return f"{self.source}\t{self.target}\n".encode()


ParallelText = Dataset[SentencePair]
Corpus = FixedDataset[SentencePair]
