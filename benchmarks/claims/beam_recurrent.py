"""Bahdanau's model translates with a beam of 5 five times as fast as two others do in torch, or faster."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.beam_search import ALONE, LIMIT, SearchProblem, joeynmt, opennmt, ours, vocabulary_product
from benchmarks.contenders.text import Batch
from benchmarks.contenders.translators import Shape

OTHERS = {"JoeyNMT": joeynmt, "OpenNMT-py": opennmt}
SHAPE = Shape("recurrent", vocabulary=4000, size=256)

CLAIM = Claim(
    "Translating by Bahdanau's model with a beam of 5",
    (
        TimeCase(
            "64 sentences, 20 tokens said for each, 256 units each way, vocabulary 4,000",
            SearchProblem(SHAPE, Batch(960, SHAPE.vocabulary), steps=20),
            tiny=SearchProblem(Shape("recurrent", vocabulary=31, size=12), Batch(60, 31), steps=5),
            ours=ours,
            peers={},
            also={**OTHERS, ALONE: vocabulary_product},
            bounds=tuple(Bound(other, least=5.0) for other in OTHERS),
            limit=LIMIT,
        ),
    ),
)
