"""Tasks whose items are tensors of one shape, with the items along the first axis."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import wrong
from regard.tasks.data.batches import shuffle_batches
from regard.tasks.data.fingerprints import digest, save_fingerprint
from regard.tasks.data.split_notes import describe_overlaps, describe_sizes
from regard.tasks.definition import Config, TaskDefinition
from regard.tasks.prediction import EvaluationReport, Predictor, load_model
from regard.training import DataShare, Goal, LazyBatches, Loss

Tensors = tuple[Tensor, ...]
EVALUATION_BATCH = 1000  # held-out items in a batch


@dataclass(frozen=True, slots=True)
class DataSplits:
    """Items to train on, by epoch, and items that are held out."""

    load_training: Callable[[int], Tensors]
    validation: Tensors
    tests: Mapping[str, Tensors]
    notes: Sequence[str] = ()
    endless: bool = False  # whether every epoch has new items

    def get_held_out(self, split: str) -> Mapping[str, Tensors]:
        """Return the test sets, or the validation set."""
        return self.tests if split == "test" else {"validation": self.validation}

    @property
    def fingerprint(self) -> str:
        """A hash of the training and validation data."""
        tensors = (*self.load_training(0), *self.validation)
        return digest(repr(tuple(tensor.shape)).encode() + tensor.contiguous().numpy().tobytes() for tensor in tensors)


class TensorTask(ABC):
    """A `regard.training.Task` over `DataSplits`: a subclass adds the goal, the model, its loss and its metrics."""

    goal: Goal
    units: Any  # what the metrics are measured in, a sentence

    def __init__(self, config: Any, sets: Any) -> None:
        self.config, self.sets = config, sets
        self.load_training = lru_cache(maxsize=1)(sets.load_training)

    @property
    def batch(self) -> int:
        """How many items a batch has."""
        return int(self.config.batch)

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
        """Return a hash of each item, by which equal items are found."""
        return [digest(tensor[row].numpy().tobytes() for tensor in tensors) for row in range(len(tensors[0]))]

    @abstractmethod
    def model(self) -> nn.Module:
        """Return a new model."""

    @abstractmethod
    def loss(self, model: Any, batch: Tensors) -> Loss:
        """Return the loss of a batch, as a sum over its items."""

    @abstractmethod
    def compute_sums(self, model: Any, batch: Tensors) -> Mapping[str, float]:
        """Return sums over held-out items; the number of `items` divides all others."""

    def epoch(self, number: int, part: DataShare) -> Sequence[Tensors]:
        tensors = self.load_training(number)
        groups = shuffle_batches(len(tensors[0]), self.batch, self.config.training.seed, number, part)
        return LazyBatches(groups, lambda chosen: tuple(tensor[torch.tensor(chosen)] for tensor in tensors))

    def measure(self, model: Any, part: DataShare) -> dict[str, float]:
        return self.accumulate_sums(model, tuple(tensor[part.rank :: part.world] for tensor in self.sets.validation))

    def accumulate_sums(self, model: Any, tensors: Tensors) -> dict[str, float]:
        """Return the sums over any number of items."""
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
        """Return a report on each of these sets."""
        with torch.no_grad():
            totals = {name: self.accumulate_sums(model, items) for name, items in sets.items()}
        return {
            name: EvaluationReport(int(total["items"]), self.metrics(total), notes) for name, total in totals.items()
        }

    def save(self, folder: Path) -> None:
        save_fingerprint(folder, self.sets.fingerprint)


def iterate_batches(tensors: Tensors, device: torch.device) -> Iterator[Tensors]:
    """Yield all items in batches, on the device of the model."""
    for start in range(0, len(tensors[0]), EVALUATION_BATCH):
        yield tuple(tensor[start : start + EVALUATION_BATCH].to(device) for tensor in tensors)


class TensorPredictor:
    """A trained model with its task."""

    def __init__(self, task: TensorTask, model: Any) -> None:
        self.task, self.model = task, model


class TensorTaskDefinition(TaskDefinition[Config]):
    """The definition of a task over tensors: its data are all that has to be opened, by `load_splits(config.data)`."""

    task_type: type[TensorTask]
    load_splits: Callable[[Any], Any]
    predictor_type: Callable[[Any, Any], Predictor]
    data_noun = "items"

    def get_goal(self, config: Any) -> Goal:
        return self.task_type.goal

    def open_data(self, config: Any) -> Any:
        return self.load_splits(config.data)

    def assemble_task(self, config: Config, data: Any, run: Path | None) -> TensorTask:
        return self.task_type(config, data)

    def load(self, config: Any, run: Path, weights: Path | None = None) -> Predictor:
        task = self.build_task(config, run)
        return self.predictor_type(task, load_model(task.model, config.training, run, weights))


def parse_item_number(words: Sequence[str], count: int) -> int:
    """Return the number of the held-out item that was asked for, counted from 0; the first if none was named."""
    if len(words) > 1:
        raise wrong("item", " ".join(words), "one number", f"write a number below {count}")
    text = words[0] if words else "0"
    if not text.isdecimal() or int(text) >= count:
        raise wrong("item", text, f"a number from 0 to {count - 1}", f"write {count - 1}, say")
    return int(text)
