"""What each backend runs when its growth is measured: one head of width 64, batch 1, forced by name."""

import warnings

import torch
from torch import Tensor

import regard
from benchmarks.claim import Build, Contender
from benchmarks.contenders.tensors import draw_normal
from regard.compute.planning import BackendName

DIM = 64
WINDOW = 256


def build_backend(
    name: BackendName,
    *,
    score: regard.Score | None = None,
    mask: regard.Mask | None = None,
    normalizer: regard.Normalizer | None = None,
) -> Build[int]:
    """That backend on these parts, for any length. On a CPU, flex refuses what a gradient might be asked of."""
    score = regard.ScaledDot() if score is None else score
    mask = regard.Full() if mask is None else mask
    normalizer = regard.Softmax() if normalizer is None else normalizer
    warnings.filterwarnings("ignore", "flex_attention called without")  # that is what is measured

    def build(length: int) -> Contender:
        shape = (1, 1, length, DIM)
        inputs = [draw_normal(*shape, seed=seed).requires_grad_(name != "flex") for seed in (1, 2, 3)]
        query, key, value = inputs

        def forward() -> Tensor:
            return regard.attend(query, key, value, score=score, mask=mask, normalizer=normalizer, backend=name).output

        return Contender(forward, (*inputs, *score.parameters()))

    return build


def build_additive_score() -> regard.Additive:
    """Return the score of the stream, with numbers that do not depend on when it is built."""
    score = regard.Additive.projected(DIM)
    score.weight = torch.nn.Parameter(draw_normal(DIM, seed=4).detach())
    return score
