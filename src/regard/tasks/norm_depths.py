"""Stacks of encoder blocks with the norm first or last, at several depths, on sequences said backwards."""

import torch
from torch import Tensor, nn

from regard.layers import EncoderBlock, PostNorm, PreNorm
from regard.layers.positions import Sinusoidal

DEPTHS = (1, 4, 12)
SYMBOLS, LENGTH, SIZE = 10, 12, 32
STEPS, RATE = 300, 2e-3  # updates, without a warm-up
TESTED, TEST_SEED = 500, 10**6  # sequences of a test, and the seed that draws them
RESIDUALS = {"pre-norm": PreNorm, "post-norm": PostNorm}


class Stack(nn.Module):
    """Letters and positions, encoder blocks, and a linear layer that says a letter at each position."""

    def __init__(self, kind: str, depth: int) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS, SIZE), Sinusoidal(SIZE)
        residual = RESIDUALS[kind]
        self.blocks = nn.ModuleList(EncoderBlock(SIZE, 2, residual=residual) for _ in range(depth))
        self.norm = nn.LayerNorm(SIZE) if residual is PreNorm else nn.Identity()
        self.letter = nn.Linear(SIZE, SYMBOLS)

    def forward(self, letters: Tensor) -> Tensor:
        stream = self.positions(self.embed(letters))
        for block in self.blocks:
            stream = block(stream)
        found: Tensor = self.letter(self.norm(stream))
        return found


def train_stack(kind: str, depth: int, seed: int, steps: int) -> Stack:
    """Train by Adam at a constant rate on batches of 32 sequences."""
    torch.manual_seed(seed)
    model, generator = Stack(kind, depth), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(steps):
        letters = torch.randint(SYMBOLS, (32, LENGTH), generator=generator)
        loss = nn.functional.cross_entropy(model(letters).flatten(0, 1), letters.flip(1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def measure_norm(kind: str, seed: int, steps: int = STEPS) -> list[float]:
    """Return the percentage of right letters at each depth."""
    letters = torch.randint(SYMBOLS, (TESTED, LENGTH), generator=torch.Generator().manual_seed(TEST_SEED))
    accuracies = []
    for depth in DEPTHS:
        model = train_stack(kind, depth, seed, steps)
        with torch.no_grad():
            right = model(letters).argmax(-1) == letters.flip(1)
        accuracies.append(100 * float(right.double().mean()))
    return accuracies
