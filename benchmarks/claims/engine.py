"""`--engine ct2` takes the time of CTranslate2 itself, or a tenth more."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.beam_search import SearchProblem
from benchmarks.contenders.engine import direct, ours
from benchmarks.contenders.text import Batch
from benchmarks.contenders.translators import Shape

DIRECT = "CTranslate2, called directly"
SHAPE = Shape("transformer", vocabulary=8000, size=128, layers=4, heads=4)

CLAIM = Claim(
    "Translating by the engine of CTranslate2 with a beam of 5",
    (
        TimeCase(
            "64 texts, about 12 tokens said for each, vocabulary 8,000",
            SearchProblem(SHAPE, Batch(960, SHAPE.vocabulary), steps=14),
            tiny=SearchProblem(Shape("transformer", vocabulary=31, size=12, layers=2, heads=3), Batch(60, 31), steps=5),
            ours=ours,
            peers={},
            also={DIRECT: direct},  # it divides by another power of the length, and may prefer another hypothesis
            bounds=(Bound(DIRECT, most=1.1),),
        ),
    ),
)
