"""How a model that rewrites sequences is trained and measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from regard.models import EncoderDecoder, build_model
from regard.models.search import Hypothesis, greedy_search
from regard.tasks.data.special_tokens import SPECIAL_TOKENS
from regard.tasks.inversion.sequences import FIRST
from regard.tasks.tensor_task import Tensors, TensorTask
from regard.training import Goal, Loss


class InversionTask(TensorTask):
    """Learns to say a sequence in another order."""

    units = (
        "exact: percent of the sequences that are right to the letter; "
        "aligned: percent of the letters whose largest weight is where they came from"
    )

    goal = Goal("exact", "higher")

    def model(self) -> EncoderDecoder[Any]:
        words = FIRST + self.config.data.symbols
        return build_model(self.config.model, source=words, target=words)

    def loss(self, model: Any, batch: Tensors) -> Loss:
        losses = model.loss(*batch)
        return Loss(losses.total, losses.tokens)

    def compute_sums(self, model: Any, batch: Tensors) -> Mapping[str, float]:
        """Return how many sequences are right, and how often attention was where the letter came from."""
        source, lengths, target, target_lengths = batch
        found = decode_greedily(model, source, lengths, attention=self.config.data.rule != "sort")
        wanted = [row[1 : length - 1].tolist() for row, length in zip(target, target_lengths.tolist(), strict=True)]
        right = sum(list(one.tokens) == row for one, row in zip(found, wanted, strict=True))
        sums = {"items": float(len(wanted)), "exact": 100.0 * right}
        pointed = [self.measure_alignment(one, length - 1) for one, length in zip(found, lengths.tolist(), strict=True)]
        shares = [share for share in pointed if share is not None]
        return sums | ({"aligned": 100.0 * sum(shares)} if shares else {})

    def measure_alignment(self, one: Hypothesis, length: int) -> float | None:
        """Return the share of letters whose largest weight lies where the rule takes the letter from."""
        if one.weights is None or self.config.data.rule == "sort":
            return None
        attended: list[int] = one.weights[: len(one.tokens)].argmax(-1).tolist()
        places = range(length)[::-1] if self.config.data.rule == "invert" else range(length)
        return sum(place == right for place, right in zip(attended, places, strict=False)) / length


def decode_greedily(model: Any, source: Tensor, lengths: Tensor, *, attention: bool) -> Sequence[Hypothesis]:
    """Return the hypothesis of greedy search for each source."""
    return greedy_search(model.decoder, model.encode(source, lengths), SPECIAL_TOKENS, lengths + 2, attention=attention)
