"""Bahdanau's model translates with a beam of 5 faster than two others do in torch: in float32, and more so in int8.

The bound of int8 is for processors with VNNI; 3 without.
"""

from functools import partial

from benchmarks.claim import Bound, Build, Claim, TimeCase
from benchmarks.contenders.beam_search import ALONE, LIMIT, SearchProblem, joeynmt, opennmt, ours, vocabulary_product
from benchmarks.contenders.text import Batch
from benchmarks.contenders.translators import Shape

OTHERS = {"JoeyNMT": joeynmt, "OpenNMT-py": opennmt}
SHAPE = Shape("recurrent", vocabulary=4000, size=256)


def build_case(name: str, build: Build[SearchProblem], least: tuple[float, float]) -> TimeCase[SearchProblem]:
    """Build the case of one precision of ours."""
    return TimeCase(
        f"64 sentences, 20 tokens said for each, 256 units each way, vocabulary 4,000, {name}",
        SearchProblem(SHAPE, Batch(960, SHAPE.vocabulary), steps=20),
        tiny=SearchProblem(Shape("recurrent", vocabulary=31, size=12), Batch(60, 31), steps=5),
        ours=build,
        peers={},
        also={**OTHERS, ALONE: vocabulary_product},
        bounds=tuple(Bound(other, least=one) for other, one in zip(OTHERS, least, strict=True)),
        limit=LIMIT,
    )


CLAIM = Claim(
    "Translating by Bahdanau's model with a beam of 5",
    (
        build_case("ours in float32", ours, (3.0, 2.0)),
        build_case("ours in int8", partial(ours, precision="int8"), (5.0, 4.0)),
    ),
)
