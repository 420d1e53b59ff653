"""`--engine ct2` takes the time of CTranslate2 itself, or a tenth more; int8 leaves searches in torch far behind."""

from dataclasses import replace
from functools import partial

from benchmarks.claim import Bound, Build, Claim, Contender, TimeCase
from benchmarks.contenders import beam_search
from benchmarks.contenders.beam_search import SearchProblem
from benchmarks.contenders.engine import direct, ours
from benchmarks.contenders.text import Batch
from benchmarks.contenders.translators import Shape
from regard.models.kernels.prepacked import Precision

DIRECT, OPENNMT, TORCH = "CTranslate2, called directly", "OpenNMT-py, 12 tokens said for each", "regard by torch"
SHAPE = Shape("transformer", vocabulary=8000, size=128, layers=4, heads=4)
TINY = SearchProblem(Shape("transformer", vocabulary=31, size=12, layers=2, heads=3), Batch(60, 31), steps=5)


def build_case(precision: Precision, *more: Bound) -> TimeCase[SearchProblem]:
    """Build the case of one precision. Peers in torch produce as many tokens: about 12, after which the model ends."""
    return TimeCase(
        f"64 texts, about 12 tokens said for each, vocabulary 8,000, {precision}",
        SearchProblem(SHAPE, Batch(960, SHAPE.vocabulary), steps=14),
        tiny=TINY,
        ours=partial(ours, precision=precision),
        peers={},
        # CTranslate2 divides by another power of the length, and may prefer another hypothesis.
        also={
            DIRECT: partial(direct, precision=precision),
            OPENNMT: partial(_search_as_long, beam_search.opennmt),
            TORCH: partial(_search_as_long, beam_search.ours),
        },
        bounds=(Bound(DIRECT, most=1.1), *more),
    )


def _search_as_long(search: Build[SearchProblem], task: SearchProblem) -> Contender:
    return search(replace(task, steps=task.steps - 2))


CLAIM = Claim(
    "Translating by the engine of CTranslate2 with a beam of 5",
    (build_case("float32"), build_case("int8", Bound(OPENNMT, least=20.0))),
)
