"""Training of small models on batches that are drawn as they are needed."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Draw = Callable[[torch.Generator], tuple[tuple[Any, ...], Tensor]]  # inputs of a batch, and its labels
TEST_SEED = 10**6  # draws what models are tested on, and is no seed of a training

BatchDraw = Callable[[torch.Generator], tuple[tuple[Any, ...], Tensor]]  # the inputs of a model, and their labels


def train_on_batches(
    model: nn.Module,
    draw: Callable[[torch.Generator], tuple[tuple[Any, ...], Tensor]],
    seed: int,
    steps: int,
    rate: float,
) -> None:
    """Train by Adam at a constant rate, with cross-entropy between what the model says of a batch and its labels."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        inputs, labels = draw(generator)
        loss = nn.functional.cross_entropy(model(*inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
