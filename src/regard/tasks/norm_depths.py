"""Stacks of encoder blocks with the norm first or last, at several depths, on sequences said backwards."""

import torch
from torch import Tensor, nn

from regard.layers import EncoderBlock, PostNorm, PreNorm
from regard.layers.positions import Sinusoidal
from regard.tasks.small_training import TEST_SEED, train_on_batches

DEPTHS = (1, 4, 12)
SYMBOLS, LENGTH, SIZE = 10, 12, 32
STEPS, RATE = 300, 2e-3  # updates, without a warm-up
TESTED = 500  # sequences of a test
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
        return found.transpose(1, 2)  # letters before positions, as cross_entropy has it


def train_stack(kind: str, depth: int, seed: int, steps: int) -> Stack:
    """Train by Adam at a constant rate on batches of 32 sequences."""
    torch.manual_seed(seed)
    model = Stack(kind, depth)

    def draw(generator: torch.Generator) -> tuple[tuple[Tensor], Tensor]:
        letters = torch.randint(SYMBOLS, (32, LENGTH), generator=generator)
        return (letters,), letters.flip(1)

    train_on_batches(model, draw, seed, steps, RATE)
    return model


def measure_norm(kind: str, seed: int, steps: int = STEPS) -> list[float]:
    """Return the percentage of right letters at each depth."""
    letters = torch.randint(SYMBOLS, (TESTED, LENGTH), generator=torch.Generator().manual_seed(TEST_SEED))
    accuracies = []
    for depth in DEPTHS:
        model = train_stack(kind, depth, seed, steps)
        with torch.no_grad():
            right = model(letters).argmax(1) == letters.flip(1)
        accuracies.append(100 * float(right.double().mean()))
    return accuracies
