"""Data without a download: endless items, of which none that is held out is ever trained on."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Generic, Literal, TypeVar

from regard.models.config import positive
from regard.tasks.data.pairs import Pair

Split = Literal["train", "validation", "test"]
PATIENCE = 2000  # draws in vain: of twenty one is held out, so that by then there are no more
Item = TypeVar("Item")
Fact = TypeVar("Fact")  # what both sides of a pair say: a number, a date


class Endless(ABC, Generic[Item]):
    """`size` items in an epoch, and `held_out` for validation and test each.

    What decides where an item belongs is a hash of its content (`split_of`): whatever the seed or the size, what is
    tested in one run was not trained on in any other.
    """

    notes: Sequence[str] = ()
    endless = True

    def __init__(self, size: int, held_out: int, seed: int) -> None:
        for name, value in (("size", size), ("held_out", held_out)):
            positive(name, value)
        self.size, self.held_out, self.seed = size, held_out, seed

    @abstractmethod
    def items(self, split: Split, count: int, random: Random) -> Iterator[Item]:
        """So many items of a split."""

    def training(self, epoch: int) -> Sequence[Item]:
        """New items in every epoch, the same whenever that epoch is asked for."""
        return list(self.items("train", self.size, drawing(self.seed, "train", str(epoch))))

    @cached_property
    def validation(self) -> Sequence[Item]:
        return list(self.items("validation", self.held_out, drawing(self.seed, "validation")))

    @cached_property
    def tests(self) -> Mapping[str, Sequence[Item]]:
        return {"test": list(self.items("test", self.held_out, drawing(self.seed, "test")))}


class Generated(Endless[Pair], Generic[Fact]):
    """Draws facts and says them in two ways. A fact belongs to one split for ever, whatever the languages."""

    @abstractmethod
    def draw(self, random: Random) -> Fact:
        """Some fact."""

    @abstractmethod
    def say(self, fact: Fact, random: Random) -> Pair:
        """The fact in the language of the source and in that of the target."""

    def items(self, split: Split, count: int, random: Random) -> Iterator[Pair]:
        """Pairs of a split. What is held out has no pair twice, and may be fewer where there are no more."""
        seen, tries = set[Pair](), 0
        while count and tries < PATIENCE:
            fact, tries = self.draw(random), tries + 1
            pair = self.say(fact, random) if split_of(fact) == split else None
            if pair and pair not in seen:
                yield pair
                count, tries = count - 1, 0
                if split != "train":
                    seen.add(pair)


def drawing(seed: int, split: Split, name: str = "") -> Random:
    """What the items of a split are drawn from: the same on every machine and in every process.

    A string seeds Random through sha512.
    """
    return Random(f"{seed} {split} {name}")


def split_of(fact: object) -> Split:
    """Five in a hundred facts are for validation, five for the test."""
    share = int.from_bytes(hashlib.blake2b(str(fact).encode(), digest_size=8).digest()) % 100
    return "validation" if share < 5 else "test" if share < 10 else "train"
