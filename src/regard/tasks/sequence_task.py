"""Tasks whose items have lengths: batches of like lengths within a budget of tokens."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from regard.tasks.data.batches import BatchPlan, group_by_length, make_batches
from regard.tasks.data.fingerprints import save_fingerprint
from regard.tasks.data.rows import tabulate_lengths
from regard.tasks.definition import choose_goal
from regard.training import DataShare, Goal, LazyBatches, Loss


class SequenceTask(ABC):
    """A `regard.training.Task` over a data set whose items are encoded as token ids.

    An encoded epoch has `lengths`, `notes`, and `collate`, which makes a batch of some of its items.
    """

    def __init__(self, config: Any, dataset: Any, vocabulary: Any) -> None:
        self.config, self.dataset, self.vocabulary = config, dataset, vocabulary
        self.get_encoded = lru_cache(maxsize=1)(self.encode_epoch)
        self.get_plan = lru_cache(maxsize=1)(self.plan_epoch)

    @property
    def goal(self) -> Goal:
        return choose_goal(self.config.measure.goal)

    @property
    def validation_items(self) -> Sequence[Any]:
        """The items that are measured while the model trains."""
        items: Sequence[Any] = self.dataset.validation[: self.config.measure.most]
        return items

    @abstractmethod
    def encode_epoch(self, epoch: int) -> Any:
        """Return the encoded training items of an epoch; files have the same in each."""

    def epoch(self, number: int, part: DataShare) -> Sequence[Any]:
        return LazyBatches(self.get_plan(number, part), self.get_items(number).collate)

    def get_items(self, epoch: int) -> Any:
        """Return the encoded training items of an epoch, which are kept until another epoch has others."""
        return self.get_encoded(epoch if self.dataset.endless else 0)

    def plan_epoch(self, number: int, part: DataShare) -> BatchPlan:
        """Return which items are in which batch of an epoch."""
        lengths, settings = self.get_items(number).lengths, self.config
        seed, budget = settings.training.seed, settings.learning.budget
        return make_batches(lengths, budget, seed, number, rank=part.rank, world=part.world)

    def loss(self, model: Any, batch: Any) -> Loss:
        losses = model.loss(*batch, smoothing=self.config.learning.smoothing)
        return Loss(losses.total, losses.tokens)

    def measure_loss(self, model: Any, held_out: Any) -> dict[str, float]:
        """Return the negative log-likelihood of the right tokens, and how many there are."""
        sums, device = {"surprise": 0.0, "tokens": 0.0}, next(model.parameters()).device
        longest = tabulate_lengths(held_out.lengths).max(axis=1).tolist()
        for chosen in group_by_length(longest, self.config.learning.budget):
            losses = model.loss(*(tensor.to(device) for tensor in held_out.collate(chosen)))
            sums["surprise"] += float(losses.negative_log_likelihood)
            sums["tokens"] += losses.tokens
        return sums

    def save(self, folder: Path) -> None:
        self.save_vocabulary(folder)
        save_fingerprint(folder, self.dataset.fingerprint)

    @abstractmethod
    def save_vocabulary(self, folder: Path) -> None:
        """Write what turns text into token ids to a run folder."""
