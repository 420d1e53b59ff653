"""Tasks over tensors whose first axis is the items: what is common to those whose items are all alike."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import wrong
from regard.tasks.data.fingerprints import check_same, digest, keep
from regard.tasks.data.parts import repeated, sizes
from regard.tasks.data.shuffling import shuffled
from regard.tasks.predicting import Report
from regard.training import Batched, Goal, Loss, Part

Tensors = tuple[Tensor, ...]
AT_ONCE = 1000  # held-out items in a batch


@dataclass(frozen=True, slots=True)
class Sets:
    """Items to learn from, the same whenever an epoch is asked for, and items that were held out."""

    training: Callable[[int], Tensors]
    validation: Tensors
    tests: Mapping[str, Tensors]
    notes: Sequence[str] = ()
    endless: bool = False  # whether there are new ones in every epoch

    def held_out(self, split: str) -> Mapping[str, Tensors]:
        """Each set of the test, or that of the validation."""
        return self.tests if split == "test" else {"validation": self.validation}

    @property
    def fingerprint(self) -> str:
        """Other data have another one."""
        content = hashlib.sha256()
        for tensor in (*self.training(0), *self.validation):
            content.update(repr(tuple(tensor.shape)).encode() + tensor.contiguous().numpy().tobytes())
        return content.hexdigest()[:16]


class Tabular(ABC):
    """A `regard.training.Task` for one model over `Sets`; what is left to say is the model, its loss and its score."""

    def __init__(self, config: Any, sets: Sets, goal: Goal, *, batch: int) -> None:
        self.config, self.sets, self.goal, self.batch = config, sets, goal, batch
        self.training = lru_cache(maxsize=1)(sets.training)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the data."""
        learned, held_out = self.training(0), {"validation": self.sets.validation, **self.sets.tests}
        counts = {name: len(tensors[0]) for name, tensors in held_out.items()}
        counted = sizes("items", len(learned[0]), counts.pop("validation"), counts, endless=self.sets.endless)
        if self.sets.endless:
            return (counted, *self.sets.notes)
        shared = repeated("items", self.contents(learned), {n: self.contents(own) for n, own in held_out.items()})
        return (counted, *self.sets.notes, *shared)

    def contents(self, tensors: Tensors) -> list[str]:
        """A short name for each item: those that are alike have the same."""
        return [digest(tensor[row].numpy().tobytes() for tensor in tensors) for row in range(len(tensors[0]))]

    @abstractmethod
    def model(self) -> nn.Module:
        """A new model."""

    @abstractmethod
    def loss(self, model: Any, batch: Tensors) -> Loss:
        """What is made small."""

    @abstractmethod
    def sums(self, model: Any, batch: Tensors) -> Mapping[str, float]:
        """Sums over held-out items; `items` is how many there are, and divides all others."""

    def epoch(self, number: int, part: Part) -> Sequence[Tensors]:
        tensors = self.training(number)
        groups = shuffled(len(tensors[0]), self.batch, self.config.training.seed, number, part)
        return Batched(groups, lambda chosen: tuple(tensor[torch.tensor(chosen)] for tensor in tensors))

    def measure(self, model: Any, part: Part) -> dict[str, float]:
        return self.summed(model, tuple(tensor[part.rank :: part.world] for tensor in self.sets.validation))

    def summed(self, model: Any, tensors: Tensors) -> dict[str, float]:
        """The sums over any number of items."""
        total: dict[str, float] = {}
        for batch in in_turn(tensors, next(model.parameters()).device):
            for name, value in self.sums(model, batch).items():
                total[name] = total.get(name, 0.0) + float(value)
        return total

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {name: value / sums["items"] for name, value in sums.items() if name != "items"}

    def reports(self, model: Any, sets: Mapping[str, Tensors], notes: Sequence[str] = ()) -> dict[str, Report]:
        """How good a model is on each of these sets."""
        with torch.no_grad():
            totals = {name: self.summed(model, items) for name, items in sets.items()}
        return {name: Report(int(total["items"]), self.metrics(total), notes) for name, total in totals.items()}

    def save(self, folder: Path) -> None:
        keep(folder, self.sets.fingerprint)


def in_turn(tensors: Tensors, device: torch.device) -> Iterator[Tensors]:
    """All items, so many at once, on the device of the model."""
    for start in range(0, len(tensors[0]), AT_ONCE):
        yield tuple(tensor[start : start + AT_ONCE].to(device) for tensor in tensors)


def check_items(sets: Sets, run: Path | None) -> None:
    """Raises where a run would go on with other items than it began with."""
    if run is not None:
        check_same("items", sets.fingerprint, run)


def the_item(words: Sequence[str], count: int, name: str = "item") -> int:
    """Which of the held-out items was asked for, by its number from 0; the first where none was named."""
    if len(words) > 1:
        raise wrong(name, " ".join(words), "one number", f"write a number below {count}")
    text = words[0] if words else "0"
    if not text.isdecimal() or int(text) >= count:
        raise wrong(name, text, f"a number from 0 to {count - 1}", f"write {count - 1}, say")
    return int(text)
