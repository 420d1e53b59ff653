"""Transformer-Tiny translates with a beam of 5 faster than three others do in torch.

The bounds are for AVX-512: 2.5 with AVX2, where products take a larger share of everybody's time.
"""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.beam_search import (
    ALONE,
    LIMIT,
    SearchProblem,
    joeynmt,
    marian,
    opennmt,
    ours,
    vocabulary_product,
)
from benchmarks.contenders.text import Batch
from benchmarks.contenders.translators import Shape

OTHERS = {"JoeyNMT": joeynmt, "OpenNMT-py": opennmt, "transformers' Marian": marian}
SHAPE = Shape("transformer", vocabulary=8000, size=128, layers=4, heads=4)

CLAIM = Claim(
    "Translating by Transformer-Tiny with a beam of 5",
    (
        TimeCase(
            "64 sentences, 20 tokens said for each, vocabulary 8,000",
            SearchProblem(SHAPE, Batch(960, SHAPE.vocabulary), steps=20),
            tiny=SearchProblem(Shape("transformer", vocabulary=31, size=12, layers=2, heads=3), Batch(60, 31), steps=5),
            ours=ours,
            peers={},
            also={**OTHERS, ALONE: vocabulary_product},
            bounds=tuple(Bound(other, least=least) for other, least in zip(OTHERS, (5.0, 3.5, 3.5), strict=True)),
            limit=LIMIT,
        ),
    ),
)
