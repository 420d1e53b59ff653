"""Generated data: new items in every epoch, of which none that is held out is ever trained on."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Generic, Literal, TypeVar

from regard.models.ranges import at_least
from regard.tasks.data.dataset import FingerprintMixin, Item
from regard.tasks.data.pairs import SentencePair

Split = Literal["train", "validation", "test"]
PATIENCE = 2000  # draws in vain after which a split has no more items: each holds 5 % or more of all
Drawn = TypeVar("Drawn")
Fact = TypeVar("Fact")  # the content of both sides of a pair: a number, a date


class GeneratedData(FingerprintMixin, ABC, Generic[Item]):
    """`size` items in an epoch, and `held_out` items for validation and test each.

    The split of an item follows from a hash of its content (`assign_split`): whatever the seed or the size, what is
    tested in one run was not trained on in any other.
    """

    notes: Sequence[str] = ()
    endless = True
    cut = False

    def __init__(self, size: int, held_out: int, seed: int) -> None:
        for name, value in (("size", size), ("held_out", held_out)):
            at_least(1).check(name, value)
        self.size, self.held_out, self.seed = size, held_out, seed

    @abstractmethod
    def draw(self, random: Random) -> tuple[object, Callable[[str], Item]]:
        """Draw a fact, which decides the split, and return it with a function that makes a named item of it."""

    def draw_items(self, split: Split, count: int, random: Random) -> Iterator[Item]:
        """Yield items of a split. Held-out items do not repeat, and may be fewer if there are no more."""
        return draw_split(split, count, lambda: self.draw(random), lambda item: item.to_bytes())

    def load_training(self, epoch: int) -> Sequence[Item]:
        """Return the items of an epoch, which are the same whenever they are asked for."""
        return list(self.draw_items("train", self.size, make_random(self.seed, "train", str(epoch))))

    @cached_property
    def validation(self) -> Sequence[Item]:
        return list(self.draw_items("validation", self.held_out, make_random(self.seed, "validation")))

    @cached_property
    def tests(self) -> Mapping[str, Sequence[Item]]:
        return {"test": list(self.draw_items("test", self.held_out, make_random(self.seed, "test")))}


class GeneratedPairs(GeneratedData[SentencePair], Generic[Fact]):
    """Facts written in two ways. A fact belongs to one split, whatever the languages."""

    @abstractmethod
    def draw_fact(self, random: Random) -> Fact:
        """Return some fact."""

    @abstractmethod
    def write_pair(self, fact: Fact, random: Random) -> SentencePair:
        """Return the fact in the language of the source and in that of the target."""

    def draw(self, random: Random) -> tuple[Fact, Callable[[str], SentencePair]]:
        fact = self.draw_fact(random)
        return fact, lambda _: self.write_pair(fact, random)


def draw_split(
    split: Split,
    count: int,
    draw: Callable[[], tuple[object, Callable[[str], Drawn]]],
    get_key: Callable[[Drawn], Hashable],
) -> Iterator[Drawn]:
    """Draw facts, and yield `count` things made of those that belong to a split; held-out ones do not repeat."""
    seen, made, tries = set[Hashable](), 0, 0
    while made < count and tries < PATIENCE:
        (fact, make), tries = draw(), tries + 1
        if assign_split(fact) == split:
            drawn = make(f"{split} {made}")
            if split == "train" or get_key(drawn) not in seen:
                yield drawn
                made, tries = made + 1, 0
                seen |= set() if split == "train" else {get_key(drawn)}


def make_random(seed: int, split: Split, name: str = "") -> Random:
    """Return a generator that is the same on every machine and in every process: a string seeds Random by sha512."""
    return Random(f"{seed} {split} {name}")


def assign_split(fact: object) -> Split:
    """Return the split of a fact: 5 % are for validation, 5 % for the test."""
    share = int.from_bytes(hashlib.blake2b(str(fact).encode(), digest_size=8).digest()) % 100
    return "validation" if share < 5 else "test" if share < 10 else "train"
