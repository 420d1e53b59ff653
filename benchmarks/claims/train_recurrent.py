"""An update of Bahdanau's model takes two thirds of the time that it takes the best of three others, or less."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.text import Batch
from benchmarks.contenders.training import Update, joeynmt, opennmt, ours, plain
from benchmarks.contenders.translators import Shape

# Their weights are their own, so that their losses are not compared.
OTHERS = {"nn.GRU": plain, "JoeyNMT": joeynmt, "OpenNMT-py": opennmt}
SHAPE = Shape("recurrent", vocabulary=4000, size=256)

CLAIM = Claim(
    "Training Bahdanau's model: forward, backward, clipping and AdamW",
    (
        TimeCase(
            "4,096 target tokens, sentences as they come, 256 units each way, vocabulary 4,000",
            Update(SHAPE, Batch(4096, SHAPE.vocabulary)),
            tiny=Update(Shape("recurrent", vocabulary=31, size=12), Batch(60, vocabulary=31)),
            ours=ours,
            peers={},
            also=OTHERS,
            bounds=tuple(Bound(other, least=1.5) for other in OTHERS),
        ),
    ),
)
