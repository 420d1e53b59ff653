"""The seven steps of attention, one after another, as something that can be trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.aggregates import Argmax
from regard.catalog import Sizes
from regard.layers.positions import Sinusoidal
from regard.operator import Attended
from regard.tasks.data.sequences import RULES, Sequences, from_file
from regard.tasks.mechanisms import mechanism_of
from regard.tasks.next_vector.config import Data, Model, NextVectorConfig
from regard.tasks.tabular import Sets, Tabular, Tensors, check_items
from regard.training import Goal, Loss

BEST = Argmax()


class Predicted(NamedTuple):
    """The next vector, and where the last one looked for it."""

    vector: Tensor
    attended: Attended


class SevenSteps(nn.Module):
    r"""Attention of the last vector over all that came.

    1. embed: $e_i = E x_i$; 2. query and keys: $q = W_q (e_n + p_n)$, $k_i = W_k (e_i + p_i)$ with sinusoidal
    positions $p$ counted from the end; 3. score each key, by default $q^\top k_i$; 4. softmax; 5. weighted sum of the
    $e_i$; 6. a linear layer makes the next vector of it; 7. gradient descent on the squared error (`regard.training`).
    """

    def __init__(self, size: int, length: int, config: Model) -> None:
        super().__init__()
        self.embed = nn.Linear(size, config.size, bias=False)
        self.positions = Sinusoidal(config.size)
        self.query = nn.Linear(config.size, config.size, bias=False)
        self.key = nn.Linear(config.size, config.size, bias=False)
        # At first the last vector looks at itself; from a random start it may settle on one further back.
        self.key.load_state_dict(self.query.state_dict())
        sizes = Sizes(config.size, config.size, config.size, keys=length)
        self.mechanism = mechanism_of(config.score, sizes, config.normalizer, config.reading)
        self.linear = nn.Linear(config.size, size)

    def forward(self, vectors: Tensor) -> Predicted:
        embedded = self.embed(vectors)
        placed = self.positions(embedded.flip(1)).flip(1)
        query, key = self.query(placed[:, -1:]), self.key(placed)
        mechanism = self.mechanism
        if not self.training and mechanism.aggregate.random:
            mechanism = mechanism.replaced(aggregate=BEST)  # draws are for learning: an answer is the same each time
        attended = mechanism.attend(query, key, embedded)
        return Predicted(self.linear(attended.output.squeeze(1)), attended)


class NextVector(Tabular):
    """Learns to predict the last vector of a sequence from those before it."""

    def __init__(self, config: NextVectorConfig, sets: Sets, floor: float | None) -> None:
        super().__init__(config, sets, goal_of(config), batch=config.batch)
        self.floor = floor

    def model(self) -> SevenSteps:
        _, length, size = self.sets.validation[0].shape
        return SevenSteps(size, length - 1, self.config.model)

    def loss(self, model: Any, batch: Tensors) -> Loss:
        wanted = batch[0][:, -1]
        return Loss((model(batch[0][:, :-1]).vector - wanted).square().sum(), wanted.numel())

    def sums(self, model: Any, batch: Tensors) -> Mapping[str, float]:
        """Squared errors beside those of saying the last vector again, and the mean of all."""
        vectors, right = batch
        before, wanted = vectors[:, :-1], vectors[:, -1]
        found = model(before)
        guesses = {"error": found.vector, "last value": before[:, -1], "mean": before.mean(1)}
        sums = {name: float((guess - wanted).square().mean(-1).sum()) for name, guess in guesses.items()}
        if int(right[0]) >= 0:
            looked = found.attended.weights.dense().squeeze(1).argmax(-1)
            sums["pointed"] = 100 * float((looked == right).sum())
        return {"items": float(len(wanted)), **sums}


def goal_of(_: Any) -> Goal:
    """The squared error decides."""
    return Goal("error", "lower")


def task(config: NextVectorConfig, run: Path | None = None) -> NextVector:
    """The task of a new run, or of one whose sequences must be the same."""
    sets, floor = sets_of(config.data)
    check_items(sets, run)
    return NextVector(config, sets, floor)


def sets_of(data: Data) -> tuple[Sets, float | None]:
    """Sequences by a rule or from a file, the last fifth for tests and the fifth before for validation."""
    if data.source in RULES:
        found = RULES[data.source](data.items, data.length, data.size, data.noise, data.seed)
    else:
        found = in_units(from_file(Path(data.source), data.length))
    parts = [tensors(found, part) for part in found.parts()]
    return Sets(lambda _: parts[0], parts[1], {"test": parts[2]}), found.floor


def in_units(found: Sequences) -> Sequences:
    """A file's numbers with mean 0 and deviation 1, as those have that are learned from."""
    known = found.vectors[found.parts()[0]].reshape(-1, found.vectors.shape[-1])
    spread = known.std(0)
    return found._replace(vectors=(found.vectors - known.mean(0)) / np.where(spread > 0, spread, 1.0))


def tensors(found: Sequences, part: slice) -> Tensors:
    return torch.from_numpy(found.vectors[part]).float(), torch.from_numpy(found.right[part])
