"""Sentences in numbers: their lengths are like those of Multi30k in subwords, their words mean nothing."""

from dataclasses import dataclass

import torch
from torch import Tensor

UNKNOWN, PADDING, BEGIN, END = range(4)  # the order that JoeyNMT insists on
WORDS = 4  # the first number that is a word


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long sentences are: `mean` words, give or take a `spread`, and at least `least`."""

    mean: float = 14.0
    spread: float = 5.0
    least: int = 4
    apart: float = 2.0  # how far a target's length is from its source's


@dataclass(frozen=True, slots=True)
class Batch:
    """As many sentences as have `tokens` target tokens; `alike`: of one length or nearly, as out of a bucket."""

    tokens: int
    vocabulary: int
    alike: bool = False
    lengths: Lengths = Lengths()


class Text:
    """Sources, and targets that begin with BEGIN and end with END. All lengths count what they have of both."""

    def __init__(self, batch: Batch) -> None:
        self.draw = torch.Generator().manual_seed(1)
        lengths = self._lengths(batch)
        self.source_lengths, self.target_lengths = lengths[:, 0] + 1, lengths[:, 1] + 2
        self.source = self._words(self.source_lengths, batch.vocabulary)
        self.target = self._words(self.target_lengths, batch.vocabulary)
        self.target[:, 0] = BEGIN

    @property
    def tokens(self) -> int:
        """Target tokens that are to be said."""
        return int((self.target_lengths - 1).sum())

    def _lengths(self, batch: Batch) -> Tensor:
        """Draw how many words source and target of each sentence have."""
        how = batch.lengths
        pool = 100 * batch.tokens // int(how.mean)
        source = torch.randn(pool, generator=self.draw) * how.spread + how.mean
        target = source + torch.randn(pool, generator=self.draw) * how.apart
        both = torch.stack([source, target], dim=1).round().clamp_min(how.least).long()
        if batch.alike:
            both = both[both.amax(1) == int(how.mean)]
        return both[(both[:, 1] + 1).cumsum(0) <= batch.tokens]

    def _words(self, lengths: Tensor, vocabulary: int) -> Tensor:
        """Draw words up to the lengths, of which the last is END, and padding behind them."""
        places = torch.arange(int(lengths.max()))
        words = torch.randint(WORDS, vocabulary, (len(lengths), len(places)), generator=self.draw)
        words = words.where(places < lengths[:, None] - 1, PADDING)
        return words.scatter(1, lengths[:, None] - 1, END)
