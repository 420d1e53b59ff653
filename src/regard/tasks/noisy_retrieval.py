"""Retrieval from noise: a query resembles one of many keys, and asks for its label.

The query also says where that key stands, so that a score of positions alone has something to learn from.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.algebra.catalog import Sizes
from regard.layers.positions import Sinusoidal
from regard.tasks.mechanisms import build_catalog_mechanism
from regard.tasks.small_training import TEST_SEED, train_on_batches

LABELS, POSITION = 8, 32  # labels, and numbers of a position
SHORTEST, LONGEST = 4, 16  # keys in training
TESTED = 1000  # queries of a test
WIDTHS, LENGTHS = (16, 64, 512), (16, 32, 64)
FEW, MANY = 400, 3000  # updates


class RetrievalTask(NamedTuple):
    """How large the contents of keys are, and the deviation of the noise that a query adds to them."""

    content: int = 48
    noise: float = 0.5
    longest: int = 64  # keys, also in tests

    def draw(self, count: int, keys: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return queries, keys, values that say the label of each key, and the label of the right key."""
        key = torch.randn(count, keys, self.content, generator=generator)
        place = torch.randint(keys, (count,), generator=generator)
        each = torch.arange(count)
        like = key[each, place]
        like = like + self.noise * torch.randn(like.shape, generator=generator)
        positions = Sinusoidal(POSITION)(torch.zeros(1, self.longest, POSITION))[0]
        label = torch.randint(LABELS, (count, keys), generator=generator)
        value = nn.functional.one_hot(label, LABELS).to(key.dtype)
        return torch.cat([like, positions[place]], -1), key, value, label[each, place]


class Retriever(nn.Module):
    """Projections of unit variance to queries and keys, attention, and a linear layer to the labels."""

    def __init__(self, task: RetrievalTask, width: int, score: str) -> None:
        super().__init__()
        self.query = nn.Linear(task.content + POSITION, width, bias=False)
        self.key = nn.Linear(task.content, width, bias=False)
        nn.init.normal_(self.query.weight, std=(task.content + POSITION / 2) ** -0.5)
        nn.init.normal_(self.key.weight, std=task.content**-0.5)
        sizes = Sizes(width, width, width, keys=task.longest)
        self.mechanism = build_catalog_mechanism(score, sizes)
        self.label = nn.Linear(LABELS, LABELS)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        attended = self.mechanism.attend(self.query(query)[:, None], self.key(key), value)
        found: Tensor = self.label(attended.output[:, 0])
        return found


def train_retriever(task: RetrievalTask, width: int, score: str, steps: int, seed: int) -> Retriever:
    """Train by Adam on batches of 32 queries, each batch with some number of keys."""
    torch.manual_seed(seed)
    model = Retriever(task, width, score)

    def draw(generator: torch.Generator) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
        keys = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=generator))
        query, key, value, label = task.draw(32, keys, generator)
        return (query, key, value), label

    train_on_batches(model, draw, seed, steps, rate=1e-3)
    return model


@torch.no_grad()
def compute_accuracy(task: RetrievalTask, model: Retriever, keys: int) -> float:
    """Return the percentage of right labels among so many keys."""
    query, key, value, label = task.draw(TESTED, keys, torch.Generator().manual_seed(TEST_SEED))
    return 100 * float((model(query, key, value).argmax(-1) == label).double().mean())


def measure_score(score: str, seed: int, few: int = FEW, many: int = MANY) -> list[float]:
    """Return the accuracy at each width after few updates, then with each number of keys after many."""
    task = RetrievalTask()
    early = [compute_accuracy(task, train_retriever(task, width, score, few, seed), LONGEST) for width in WIDTHS]
    model = train_retriever(task, WIDTHS[1], score, many, seed)
    return early + [compute_accuracy(task, model, keys) for keys in LENGTHS]
