"""Layer norm and batch norm on sequences of several lengths, said backwards."""

import torch
from torch import Tensor, nn

from regard.algebra.masks import Lengths
from regard.layers import EncoderBlock, PreNorm
from regard.layers.positions import Sinusoidal
from regard.tasks.small_training import TEST_SEED, train_on_batches

SYMBOLS, SIZE, DEPTH = 10, 32, 2
SHORTEST, LONGEST, MIDDLE = 2, 24, 12
STEPS, RATE, TESTED = 1500, 2e-3, 200  # updates, and sequences of a test
IGNORED = -100  # the label of padding, as cross_entropy has it


class PositionBatchNorm(nn.BatchNorm1d):
    """Batch norm over all positions of all sequences."""

    def forward(self, stream: Tensor) -> Tensor:
        return super().forward(stream.flatten(0, -2)).view_as(stream)


class BatchPreNorm(PreNorm):
    """Batch norm first."""

    def __init__(self, size: int, *, dropout: float = 0.0) -> None:
        super().__init__(size, dropout=dropout)
        self.add_module("norm", PositionBatchNorm(size))  # in the place of the layer norm


class Backwards(nn.Module):
    """Letters and positions, encoder blocks with a norm first, and a linear layer to the letters."""

    def __init__(self, *, batch_norm: bool) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(SYMBOLS + 1, SIZE), Sinusoidal(SIZE)
        residual = BatchPreNorm if batch_norm else PreNorm
        self.blocks = nn.ModuleList(EncoderBlock(SIZE, 2, residual=residual) for _ in range(DEPTH))
        self.norm = PositionBatchNorm(SIZE) if batch_norm else nn.LayerNorm(SIZE)
        self.letter = nn.Linear(SIZE, SYMBOLS)

    def forward(self, letters: Tensor, lengths: Tensor) -> Tensor:
        stream, real = self.positions(self.embed(letters)), Lengths(lengths)
        for block in self.blocks:
            stream = block(stream, real=real)
        found: Tensor = self.letter(self.norm(stream))
        return found.transpose(1, 2)


def draw_sequences(lengths: Tensor, generator: torch.Generator) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Return letters with padding, their lengths, and the letters backwards."""
    place = torch.arange(int(lengths.max()))
    letters = torch.randint(SYMBOLS, (len(lengths), len(place)), generator=generator)
    padding = place >= lengths[:, None]
    backwards = letters.gather(1, (lengths[:, None] - 1 - place).clamp_min(0))
    return (letters.masked_fill(padding, SYMBOLS), lengths), backwards.masked_fill(padding, IGNORED)


def train_backwards(*, batch_norm: bool, mixed: bool, seed: int, steps: int) -> Backwards:
    """Train on batches of 32 sequences: of mixed lengths, with padding, or each batch of one length, without."""
    torch.manual_seed(seed)
    model = Backwards(batch_norm=batch_norm)

    def draw(generator: torch.Generator) -> tuple[tuple[Tensor, Tensor], Tensor]:
        lengths = torch.randint(SHORTEST, LONGEST + 1, (32 if mixed else 1,), generator=generator)
        return draw_sequences(lengths.expand(32), generator)

    train_on_batches(model, draw, seed, steps, RATE)
    return model


@torch.no_grad()
def compute_right_letters(model: Backwards, shortest: int, longest: int) -> float:
    """Return the percentage of right letters in one batch of such lengths."""
    generator = torch.Generator().manual_seed(TEST_SEED)
    lengths = torch.randint(shortest, longest + 1, (TESTED,), generator=generator)
    inputs, labels = draw_sequences(lengths, generator)
    right = model(*inputs).argmax(1) == labels
    return 100 * float(right[labels != IGNORED].double().mean())


def measure_norm_lengths(kind: str, seed: int, steps: int = STEPS) -> list[float]:
    """Train in both kinds of batches, and return the percentage of right letters in a mixed batch and in one of 12.

    With "running" statistics batch norm is evaluated as usual, by averages of training; with "own" ones by those of
    the batch that is tested.
    """
    norm, _, statistics = kind.partition(" ")
    found = []
    for mixed in (True, False):
        model = train_backwards(batch_norm=norm == "batch", mixed=mixed, seed=seed, steps=steps)
        model.train(statistics == "own")
        found += [compute_right_letters(model, *own) for own in ((SHORTEST, LONGEST), (MIDDLE, MIDDLE))]
    return found
