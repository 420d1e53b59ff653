"""A training step of Transformer-Tiny takes two thirds of the time of a plain loop and of Marian, or less."""

from benchmarks.claim import Bound, Claim, Timed
from benchmarks.contenders.training import Sizes, marian, ours, plain

PLAIN, MARIAN = "nn.Transformer", "transformers' Marian"

CLAIM = Claim(
    "Training step of Transformer-Tiny, the same sentences",
    (
        Timed(
            "256 sentences of 8 to 16 tokens, vocabulary 8,000, forward + backward",
            Sizes(sentences=256, longest=16, vocabulary=8000),
            tiny=Sizes(sentences=5, longest=7, vocabulary=31, size=12, layers=2, heads=3),
            ours=ours,
            peers={},
            also={PLAIN: plain, MARIAN: marian},  # their weights are their own, so their losses are not compared
            bounds=(Bound(PLAIN, least=1.5), Bound(MARIAN, least=1.5)),
            backward=True,
        ),
    ),
)
