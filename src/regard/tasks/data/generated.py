"""Parallel text without a download: endless pairs, of which no test item is ever trained on."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Generic, Literal, TypeVar

from regard.errors import wrong
from regard.tasks.data.pairs import Pair

Split = Literal["train", "validation", "test"]
PATIENCE = 2000  # draws in vain: of twenty one is held out, so that by then there are no more
Fact = TypeVar("Fact")  # what both sides of a pair say: a number, a date


class Generated(ABC, Generic[Fact]):
    """Draws facts and says them in two ways.

    A fact belongs to one split for ever, by a hash of the fact: whatever the seed, the size or the languages,
    what is tested in one run was not trained on in any other.
    """

    notes: Sequence[str] = ()

    def __init__(self, size: int, held_out: int, seed: int) -> None:
        for name, value in (("size", size), ("held_out", held_out)):
            if value < 1:
                raise wrong(name, value, "at least 1", "use 1000, say")
        self.size = size
        self.held_out = held_out
        self.seed = seed

    @abstractmethod
    def draw(self, random: Random) -> Fact:
        """Some fact."""

    @abstractmethod
    def say(self, fact: Fact, random: Random) -> Pair:
        """The fact in the language of the source and in that of the target."""

    def training(self, epoch: int) -> Sequence[Pair]:
        """New pairs in every epoch, the same whenever that epoch is asked for."""
        return list(self.pairs("train", self.size, str(epoch)))

    @cached_property
    def validation(self) -> Sequence[Pair]:
        return list(self.pairs("validation", self.held_out, ""))

    @cached_property
    def tests(self) -> Mapping[str, Sequence[Pair]]:
        return {"test": list(self.pairs("test", self.held_out, ""))}

    def pairs(self, split: Split, count: int, name: str) -> Iterator[Pair]:
        """Pairs of a split. What is held out has no pair twice, and may be fewer where there are no more."""
        # A string seeds Random through sha512: the same on every machine and in every process.
        random, seen, tries = Random(f"{self.seed} {split} {name}"), set[Pair](), 0
        while count and tries < PATIENCE:
            fact, tries = self.draw(random), tries + 1
            pair = self.say(fact, random) if split_of(fact) == split else None
            if pair and pair not in seen:
                yield pair
                count, tries = count - 1, 0
                if split != "train":
                    seen.add(pair)


def split_of(fact: object) -> Split:
    """Five in a hundred facts are for validation, five for the test."""
    share = int.from_bytes(hashlib.blake2b(str(fact).encode(), digest_size=8).digest()) % 100
    return "validation" if share < 5 else "test" if share < 10 else "train"
