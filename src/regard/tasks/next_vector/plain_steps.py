"""The seven steps as the article has them: no embedding, and gradient descent on one sequence at a time."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.algebra.scores import Dot
from regard.compute.attend import attend
from regard.tasks.next_vector.config import NextVectorData
from regard.tasks.next_vector.task import load_splits

RATE, STEPS = 0.1, 1500  # of gradient descent
SCALE = 0.3  # deviation of the parameters at first


class Step(NamedTuple):
    """One of the seven steps: what it is called, and its numbers."""

    name: str
    numbers: Tensor


class PlainSteps(nn.Module):
    r"""The last vector attends to all: $z = \sum_i \mathrm{softmax}_i(x_n W \cdot x_i U)\, x_i$, then $z V$.

    Without attention all weights are equal.
    """

    def __init__(self, size: int, *, attention: bool = True) -> None:
        super().__init__()
        self.W, self.U, self.V = (nn.Parameter(SCALE * torch.randn(size, size)) for _ in range(3))
        self.score, self.attention = Dot(), attention

    def forward(self, vectors: Tensor) -> Tensor:
        if not self.attention:
            return vectors.mean(-2) @ self.V
        found = attend(vectors[..., -1:, :] @ self.W, vectors @ self.U, vectors, score=self.score)
        return found.output.squeeze(-2) @ self.V

    def trace(self, vectors: Tensor, wanted: Tensor) -> Iterator[Step]:
        """Yield the numbers of each step for one sequence, written out."""
        yield Step("embedding: x itself", vectors)
        query, keys = vectors[-1] @ self.W, vectors @ self.U
        yield Step("query of the last vector, by W; keys by U", query)
        products = keys @ query
        yield Step("inner products of the query with each key", products)
        weights = products.softmax(0)
        yield Step("softmax: attention weights", weights)
        value = weights @ vectors
        yield Step("weighted sum: attention value", value)
        guess = value @ self.V
        yield Step("next vector, by V", guess)
        yield Step("squared error, for the next update by gradient descent", (guess - wanted).square().mean())


def train_plainly(vectors: Tensor, seed: int, steps: int, *, attention: bool = True) -> PlainSteps:
    """Train by gradient descent on the squared error of one sequence at a time."""
    torch.manual_seed(seed)
    model = PlainSteps(vectors.shape[-1], attention=attention)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for place in torch.randint(len(vectors), (steps,)).tolist():
        loss = (model(vectors[place, :-1]) - vectors[place, -1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.requires_grad_(False)


def measure_plain_steps(rule: str, seed: int, steps: int = STEPS, *, attention: bool = True) -> float:
    """Train on sequences by a rule, and return the squared error of a number of the next vector in the test set."""
    sets = load_splits(NextVectorData(rule))
    model = train_plainly(sets.load_training(0)[0], seed, steps, attention=attention)
    vectors = sets.tests["test"][0]
    return float((model(vectors[:, :-1]) - vectors[:, -1]).square().mean())


def measure_guess(guess: str, rule: str) -> float:
    """Return the squared error of a guess that is not learned: the last vector again, or the mean of all."""
    vectors = load_splits(NextVectorData(rule)).tests["test"][0]
    said = vectors[:, -2] if guess == "last value" else vectors[:, :-1].mean(1)
    return float((said - vectors[:, -1]).square().mean())


def describe_steps(steps: int = STEPS) -> list[str]:
    """Train on retrieval, and return the seven steps of one sequence of the test set, a line each."""
    sets = load_splits(NextVectorData("retrieval"))
    model = train_plainly(sets.load_training(0)[0], 1, steps)
    vectors = sets.tests["test"][0][0]
    found = model.trace(vectors[:-1], vectors[-1])
    return [f"{place} {step.name}: {format_numbers(step.numbers)}" for place, step in enumerate(found, 1)]


def format_numbers(numbers: Tensor) -> str:
    """Return some numbers with two decimals; of many vectors only the last.

    >>> format_numbers(torch.tensor([[1.0, 2.0], [0.125, 3.0]])), format_numbers(torch.tensor(0.5))
    ('… 0.12 3.00', '0.50')
    """
    if numbers.ndim == 0:
        return f"{float(numbers):.2f}"
    if numbers.ndim == 2:
        return f"… {format_numbers(numbers[-1])}"
    return " ".join(f"{number:.2f}" for number in numbers.tolist())
