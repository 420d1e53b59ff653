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
from regard.tasks.data.fingerprints import check_fingerprint, digest, save_fingerprint
from regard.tasks.data.shuffle import shuffle_batches
from regard.tasks.data.split_notes import describe_overlaps, describe_sizes
from regard.tasks.prediction import EvaluationReport
from regard.training import DataShare, Goal, LazyBatches, Loss

Tensors = tuple[Tensor, ...]
EVALUATION_BATCH = 1000  # held-out items in a batch


@dataclass(frozen=True, slots=True)
class DataSplits:
    """Items to learn from, the same whenever an epoch is asked for, and items that were held out."""

    load_training: Callable[[int], Tensors]
    validation: Tensors
    tests: Mapping[str, Tensors]
    notes: Sequence[str] = ()
    endless: bool = False  # whether there are new ones in every epoch

    def get_held_out(self, split: str) -> Mapping[str, Tensors]:
        """Each set of the test, or that of the validation."""
        return self.tests if split == "test" else {"validation": self.validation}

    @property
    def fingerprint(self) -> str:
        """Other data have another one."""
        content = hashlib.sha256()
        for tensor in (*self.load_training(0), *self.validation):
            content.update(repr(tuple(tensor.shape)).encode() + tensor.contiguous().numpy().tobytes())
        return content.hexdigest()[:16]


class TensorTask(ABC):
    """A `regard.load_training.Task` for one model over `DataSplits`; what is left to say is the model, its loss and its score."""

    def __init__(self, config: Any, sets: DataSplits, goal: Goal, *, batch: int) -> None:
        self.config, self.sets, self.goal, self.batch = config, sets, goal, batch
        self.load_training = lru_cache(maxsize=1)(sets.load_training)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the data."""
        learned, held_out = self.load_training(0), {"validation": self.sets.validation, **self.sets.tests}
        counts = {name: len(tensors[0]) for name, tensors in held_out.items()}
        counted = describe_sizes("items", len(learned[0]), counts.pop("validation"), counts, endless=self.sets.endless)
        if self.sets.endless:
            return (counted, *self.sets.notes)
        shared = describe_overlaps(
            "items", self.digest_items(learned), {n: self.digest_items(own) for n, own in held_out.items()}
        )
        return (counted, *self.sets.notes, *shared)

    def digest_items(self, tensors: Tensors) -> list[str]:
        """A short name for each item: those that are alike have the same."""
        return [digest(tensor[row].numpy().tobytes() for tensor in tensors) for row in range(len(tensors[0]))]

    @abstractmethod
    def model(self) -> nn.Module:
        """A new model."""

    @abstractmethod
    def loss(self, model: Any, batch: Tensors) -> Loss:
        """What is made small."""

    @abstractmethod
    def compute_sums(self, model: Any, batch: Tensors) -> Mapping[str, float]:
        """Sums over held-out items; `items` is how many there are, and divides all others."""

    def epoch(self, number: int, part: DataShare) -> Sequence[Tensors]:
        tensors = self.load_training(number)
        groups = shuffle_batches(len(tensors[0]), self.batch, self.config.training.seed, number, part)
        return LazyBatches(groups, lambda chosen: tuple(tensor[torch.tensor(chosen)] for tensor in tensors))

    def measure(self, model: Any, part: DataShare) -> dict[str, float]:
        return self.accumulate_sums(model, tuple(tensor[part.rank :: part.world] for tensor in self.sets.validation))

    def accumulate_sums(self, model: Any, tensors: Tensors) -> dict[str, float]:
        """The sums over any number of items."""
        total: dict[str, float] = {}
        for batch in iterate_batches(tensors, next(model.parameters()).device):
            for name, value in self.compute_sums(model, batch).items():
                total[name] = total.get(name, 0.0) + float(value)
        return total

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {name: value / sums["items"] for name, value in sums.items() if name != "items"}

    def evaluate_sets(
        self, model: Any, sets: Mapping[str, Tensors], notes: Sequence[str] = ()
    ) -> dict[str, EvaluationReport]:
        """How good a model is on each of these sets."""
        with torch.no_grad():
            totals = {name: self.accumulate_sums(model, items) for name, items in sets.items()}
        return {
            name: EvaluationReport(int(total["items"]), self.metrics(total), notes) for name, total in totals.items()
        }

    def save(self, folder: Path) -> None:
        save_fingerprint(folder, self.sets.fingerprint)


def iterate_batches(tensors: Tensors, device: torch.device) -> Iterator[Tensors]:
    """All items, so many at once, on the device of the model."""
    for start in range(0, len(tensors[0]), EVALUATION_BATCH):
        yield tuple(tensor[start : start + EVALUATION_BATCH].to(device) for tensor in tensors)


def check_items(sets: DataSplits, run: Path | None) -> None:
    """Raises where a run would go on with other items than it began with."""
    if run is not None:
        check_fingerprint("items", sets.fingerprint, run)


def parse_item_number(words: Sequence[str], count: int, name: str = "item") -> int:
    """Which of the held-out items was asked for, by its number from 0; the first where none was named."""
    if len(words) > 1:
        raise wrong(name, " ".join(words), "one number", f"write a number below {count}")
    text = words[0] if words else "0"
    if not text.isdecimal() or int(text) >= count:
        raise wrong(name, text, f"a number from 0 to {count - 1}", f"write {count - 1}, say")
    return int(text)
