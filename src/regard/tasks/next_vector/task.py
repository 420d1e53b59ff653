"""The seven steps of attention, one after another, and how they are trained and measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.algebra.aggregates import Argmax
from regard.algebra.catalog import Sizes
from regard.compute.attend import AttentionResult
from regard.layers.positions import Sinusoidal
from regard.tasks.data.columns import ColumnChoice
from regard.tasks.data.scale import Scale
from regard.tasks.data.sequences import RULES, VectorSequences, read_sequences
from regard.tasks.mechanisms import build_catalog_mechanism
from regard.tasks.next_vector.config import NextVectorData, NextVectorModel
from regard.tasks.tensor_task import DataSplits, Tensors, TensorTask
from regard.training import Goal, Loss

BEST = Argmax()
USUAL_LENGTH = 8  # vectors of a sequence that is generated


class NextVectorOutput(NamedTuple):
    """The next vector, and the attention of the last one."""

    vector: Tensor
    attended: AttentionResult


class SevenSteps(nn.Module):
    r"""Attention of the last vector over all that came.

    1. embed: $e_i = E x_i$; 2. query and keys: $q = W_q (e_n + p_n)$, $k_i = W_k (e_i + p_i)$ with sinusoidal
    positions $p$ counted from the end; 3. score each key, by default $q^\top k_i$; 4. softmax; 5. weighted sum of the
    $e_i$; 6. a linear layer makes the next vector of it; 7. gradient descent on the squared error (`regard.training`).
    """

    def __init__(self, size: int, length: int, config: NextVectorModel) -> None:
        super().__init__()
        self.embed = nn.Linear(size, config.size, bias=False)
        self.positions = Sinusoidal(config.size)
        self.query = nn.Linear(config.size, config.size, bias=False)
        self.key = nn.Linear(config.size, config.size, bias=False)
        # At first the last vector attends to itself; from a random start it may settle on one further back.
        self.key.load_state_dict(self.query.state_dict())
        sizes = Sizes(config.size, config.size, config.size, keys=length)
        self.mechanism = build_catalog_mechanism(config.score, sizes, config.normalizer, config.aggregate)
        self.linear = nn.Linear(config.size, size)

    def forward(self, vectors: Tensor) -> NextVectorOutput:
        embedded = self.embed(vectors)
        placed = self.positions(embedded.flip(1)).flip(1)
        query, key = self.query(placed[:, -1:]), self.key(placed)
        mechanism = self.mechanism
        if not self.training and mechanism.aggregate.random:
            mechanism = mechanism.replace(aggregate=BEST)  # draws are for learning: an answer is the same each time
        attended = mechanism.attend(query, key, embedded)
        return NextVectorOutput(self.linear(attended.output.squeeze(1)), attended)


class NextVectorTask(TensorTask):
    """Learns to predict the last vector of a sequence from those before it."""

    goal = Goal("error", "lower")

    @property
    def units(self) -> str:
        """What the figures are."""
        if not self.sets.names:
            own = "error, last value, mean: squared error of a number of the next vector"
            return f"{own}; pointed: percent of the largest weights that are at the right place"
        names = ", ".join(self.sets.names)
        return f"error, last value, mean: squared error of {names}, each in deviations of its training rows"

    def model(self) -> SevenSteps:
        _, length, size = self.sets.validation[0].shape
        return SevenSteps(size, length - 1, self.config.model)

    def loss(self, model: Any, batch: Tensors) -> Loss:
        wanted = batch[0][:, -1]
        return Loss((model(batch[0][:, :-1]).vector - wanted).square().sum(), wanted.numel())

    def compute_sums(self, model: Any, batch: Tensors) -> Mapping[str, float]:
        """Return squared errors beside those of two guesses: the last vector again, and the mean of all."""
        vectors, right = batch
        before, wanted = vectors[:, :-1], vectors[:, -1]
        found = model(before)
        guesses = {"error": found.vector, "last value": before[:, -1], "mean": before.mean(1)}
        sums = {name: float((guess - wanted).square().mean(-1).sum()) for name, guess in guesses.items()}
        if int(right[0]) >= 0:
            largest = found.attended.weights.dense().squeeze(1).argmax(-1)
            sums["pointed"] = 100 * float((largest == right).sum())
        return {"items": float(len(wanted)), **sums}


@dataclass(frozen=True, slots=True)
class SequenceSplits(DataSplits):
    """Sequences, and the squared error that noise makes of the best prediction, if it is known.

    Those of a file have the names of its columns, and the scale that leads back to its units.
    """

    floor: float | None = None
    names: tuple[str, ...] = ()
    scale: Scale | None = None


def load_splits(data: NextVectorData) -> SequenceSplits:
    """Return sequences by a rule or from a file, the last fifth for tests and the fifth before for validation."""
    if data.source in RULES:
        length = USUAL_LENGTH if data.length is None else data.length
        found = RULES[data.source](data.items, length, data.size, data.noise, data.seed)
        scale = Scale(np.zeros(data.size), np.ones(data.size))
    else:
        found = read_sequences(Path(data.source), data.length, ColumnChoice(data.columns, data.without))
        scale = fit_scale(found)
    found = found._replace(vectors=scale.normalize(found.vectors))
    parts = [to_tensors(found, part) for part in found.parts()]
    own: dict[str, Any] = {"floor": found.floor, "names": found.names, "scale": scale, "notes": found.notes}
    return SequenceSplits(lambda _: parts[0], parts[1], {"test": parts[2]}, **own)


def fit_scale(found: VectorSequences) -> Scale:
    """Return the scale in which the training vectors have mean 0 and deviation 1; a constant number is only shifted."""
    known = found.vectors[found.parts()[0]].reshape(-1, found.vectors.shape[-1])
    spread = known.std(0)
    return Scale(known.mean(0), np.where(spread > 0, spread, 1.0))


def to_tensors(found: VectorSequences, part: slice) -> Tensors:
    """Return some of the sequences as vectors and expected positions."""
    return torch.from_numpy(found.vectors[part]).float(), torch.from_numpy(found.expected_position[part])
