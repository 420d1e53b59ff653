"""An update of Transformer-Tiny takes two thirds of the time that it takes the best of four others, or less."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.text import Batch
from benchmarks.contenders.training import Update, joeynmt, marian, opennmt, ours, plain
from benchmarks.contenders.translators import Shape

# Their weights are their own, so that their losses are not compared.
OTHERS = {"nn.Transformer": plain, "JoeyNMT": joeynmt, "OpenNMT-py": opennmt, "transformers' Marian": marian}
SHAPE = Shape("transformer", vocabulary=8000, size=128, layers=4, heads=4)
TINY = Update(Shape("transformer", vocabulary=31, size=12, layers=2, heads=3), Batch(60, vocabulary=31))


def build_case(name: str, *, alike: bool) -> TimeCase[Update]:
    """Build the case of 4,096 target tokens in sentences of many lengths, or of one."""
    return TimeCase(
        f"4,096 target tokens, {name}, vocabulary 8,000",
        Update(SHAPE, Batch(4096, SHAPE.vocabulary, alike=alike)),
        tiny=TINY,
        ours=ours,
        peers={},
        also=OTHERS,
        bounds=tuple(Bound(other, least=1.5) for other in OTHERS),
    )


CLAIM = Claim(
    "Training Transformer-Tiny: forward, backward, clipping and AdamW",
    (build_case("sentences as they come", alike=False), build_case("sentences of one length", alike=True)),
)
