"""Data without a download: endless items, of which none that is held out is ever trained on."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Generic, Literal, TypeVar

from regard.models.config import check_positive
from regard.tasks.data.pairs import SentencePair

Split = Literal["train", "validation", "test"]
PATIENCE = 2000  # draws in vain: of twenty one is held out, so that by then there are no more
Item = TypeVar("Item")
Fact = TypeVar("Fact")  # what both sides of a pair say: a number, a date


class GeneratedData(ABC, Generic[Item]):
    """`size` items in an epoch, and `held_out` for validation and test each.

    What decides where an item belongs is a hash of its content (`assign_split`): whatever the seed or the size, what is
    tested in one run was not trained on in any other.
    """

    notes: Sequence[str] = ()
    endless = True

    def __init__(self, size: int, held_out: int, seed: int) -> None:
        for name, value in (("size", size), ("held_out", held_out)):
            check_positive(name, value)
        self.size, self.held_out, self.seed = size, held_out, seed

    @abstractmethod
    def draw_items(self, split: Split, count: int, random: Random) -> Iterator[Item]:
        """So many items of a split."""

    def load_training(self, epoch: int) -> Sequence[Item]:
        """New items in every epoch, the same whenever that epoch is asked for."""
        return list(self.draw_items("train", self.size, make_random(self.seed, "train", str(epoch))))

    @cached_property
    def validation(self) -> Sequence[Item]:
        return list(self.draw_items("validation", self.held_out, make_random(self.seed, "validation")))

    @cached_property
    def tests(self) -> Mapping[str, Sequence[Item]]:
        return {"test": list(self.draw_items("test", self.held_out, make_random(self.seed, "test")))}


class GeneratedPairs(GeneratedData[SentencePair], Generic[Fact]):
    """Draws facts and says them in two ways. A fact belongs to one split for ever, whatever the languages."""

    @abstractmethod
    def draw_fact(self, random: Random) -> Fact:
        """Some fact."""

    @abstractmethod
    def write_pair(self, fact: Fact, random: Random) -> SentencePair:
        """The fact in the language of the source and in that of the target."""

    def draw_items(self, split: Split, count: int, random: Random) -> Iterator[SentencePair]:
        """Pairs of a split. What is held out has no pair twice, and may be fewer where there are no more."""
        seen, tries = set[SentencePair](), 0
        while count and tries < PATIENCE:
            fact, tries = self.draw_fact(random), tries + 1
            pair = self.write_pair(fact, random) if assign_split(fact) == split else None
            if pair and pair not in seen:
                yield pair
                count, tries = count - 1, 0
                if split != "train":
                    seen.add(pair)


def make_random(seed: int, split: Split, name: str = "") -> Random:
    """What the items of a split are drawn from: the same on every machine and in every process.

    A string seeds Random through sha512.
    """
    return Random(f"{seed} {split} {name}")


def assign_split(fact: object) -> Split:
    """Five in a hundred facts are for validation, five for the test."""
    share = int.from_bytes(hashlib.blake2b(str(fact).encode(), digest_size=8).digest()) % 100
    return "validation" if share < 5 else "test" if share < 10 else "train"
