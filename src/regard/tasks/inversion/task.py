"""Rewriting sequences as something that can be trained."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.models import EncoderDecoder, build_model
from regard.models.search import Hypothesis, greedy_search
from regard.tasks.data.special_tokens import SPECIAL_TOKENS
from regard.tasks.inversion.config import InversionConfig
from regard.tasks.inversion.sequences import FIRST, generate_splits
from regard.tasks.tensor_task import DataSplits, Tensors, TensorTask, check_items
from regard.training import Goal, Loss


class InversionTask(TensorTask):
    """Learns to say a sequence in another order."""

    def __init__(self, config: InversionConfig, sets: DataSplits) -> None:
        super().__init__(config, sets, get_goal(config), batch=config.batch)

    def model(self) -> EncoderDecoder[Any]:
        words = FIRST + self.config.data.symbols
        return build_model(self.config.model, source=words, target=words)

    def loss(self, model: Any, batch: Tensors) -> Loss:
        losses = model.loss(*batch)
        return Loss(losses.total, losses.tokens)

    def compute_sums(self, model: Any, batch: Tensors) -> Mapping[str, float]:
        """Whole sequences that are right, and how often the look was where the letter came from."""
        source, lengths, target, target_lengths = batch
        found = decode_greedily(model, source, lengths, attention=self.config.data.rule != "sort")
        wanted = [row[1 : length - 1].tolist() for row, length in zip(target, target_lengths.tolist(), strict=True)]
        right = sum(list(one.tokens) == row for one, row in zip(found, wanted, strict=True))
        sums = {"items": float(len(wanted)), "exact": 100.0 * right}
        pointed = [self.measure_alignment(one, length - 1) for one, length in zip(found, lengths.tolist(), strict=True)]
        shares = [share for share in pointed if share is not None]
        return sums | ({"aligned": 100.0 * sum(shares)} if shares else {})

    def measure_alignment(self, one: Hypothesis, length: int) -> float | None:
        """The share of letters whose largest weight lies at the place that the rule takes the letter from."""
        if one.weights is None or self.config.data.rule == "sort":
            return None
        looked: list[int] = one.weights[: len(one.tokens)].argmax(-1).tolist()
        places = range(length)[::-1] if self.config.data.rule == "invert" else range(length)
        return sum(place == right for place, right in zip(looked, places, strict=False)) / length


def decode_greedily(model: Any, source: Tensor, lengths: Tensor, *, attention: bool) -> Sequence[Hypothesis]:
    """What the model says to each source."""
    return greedy_search(model.decoder, model.encode(source, lengths), SPECIAL_TOKENS, lengths + 2, attention=attention)


def get_goal(_: Any) -> Goal:
    """Whole sequences decide."""
    return Goal("exact", "higher")


def build_task(config: InversionConfig, run: Path | None = None) -> InversionTask:
    """The task of a new run, or of one whose sequences must be the same."""
    sets = generate_splits(config.data)
    check_items(sets, run)
    return InversionTask(config, sets)
