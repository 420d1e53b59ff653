"""What can be trained: data, a model, a loss, and how good it is. Nothing here knows what the data is."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, overload, runtime_checkable

from torch import Tensor, nn

Batch = TypeVar("Batch")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Loss:
    """A sum over `count` things (tokens, pixels, points): sums add over batches, means do not."""

    total: Tensor
    count: int | Tensor


class Goal(NamedTuple):
    """Which of the metrics decides, and which way is better."""

    metric: str
    better: Literal["higher", "lower"]

    def improves(self, value: float, best: float | None) -> bool:
        if best is None or math.isnan(value):
            return not math.isnan(value)
        return value > best if self.better == "higher" else value < best

    def is_reached(self, value: float, target: float) -> bool:
        return value >= target if self.better == "higher" else value <= target


class DataShare(NamedTuple):
    """The share of one process: every `world`-th item from `rank` on."""

    rank: int = 0
    world: int = 1

    def select(self, items: Sequence[Item]) -> Sequence[Item]:
        return items[self.rank :: self.world]


@runtime_checkable
class Task(Protocol[Batch]):
    """Everything the loop needs, for one process or many.

    - `model` is built from torch's generator, which the loop has seeded.
    - `epoch` is the same whenever it is asked for: batch i of epoch n depends on nothing else. All processes
      see the same number of batches; each gets its own rows of every batch, and at least one.
    - `loss` is a sum and a count, so that a step over several batches or processes weighs each token alike.
    - `measure` is called with gradients off, on the process's share of the held-out data (which it moves to the
      model's device itself), and returns sums that add over processes (matches, lengths, n-gram counts);
      `metrics` makes numbers of their total.
    - `save` writes what prediction needs beside the weights, such as a vocabulary, when the run begins.
    """

    @property
    def goal(self) -> Goal: ...

    def model(self) -> nn.Module: ...

    def epoch(self, number: int, part: DataShare) -> Sequence[Batch]: ...

    def loss(self, model: nn.Module, batch: Batch) -> Loss: ...

    def measure(self, model: nn.Module, part: DataShare) -> Mapping[str, float]: ...

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]: ...

    def save(self, folder: Path) -> None: ...


class LazySequence(Sequence[Item], ABC):
    """A sequence whose items are made when they are asked for; a slice of it is another one."""

    @abstractmethod
    def make(self, index: int) -> Item:
        """Return one item."""

    @abstractmethod
    def select(self, chosen: slice) -> Any:
        """Return some of the items."""

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        return self.select(index) if isinstance(index, slice) else self.make(index)


class LazyBatches(LazySequence[Batch]):
    """Batches that are made when they are asked for, from lists of item numbers."""

    def __init__(self, groups: Sequence[Sequence[int]], collate: Callable[[Sequence[int]], Batch]) -> None:
        self.groups = groups
        self.collate = collate

    def __len__(self) -> int:
        return len(self.groups)

    def make(self, index: int) -> Batch:
        return self.collate(self.groups[index])

    def select(self, chosen: slice) -> "LazyBatches[Batch]":
        return LazyBatches(self.groups[chosen], self.collate)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.collate, self.groups)
