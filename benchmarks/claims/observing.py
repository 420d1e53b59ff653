"""Looking at a model while it runs, against not looking and against leaving the fused path to get weights."""

from benchmarks.claim import Bound, Claim, Timed, Weighed
from benchmarks.contenders.observing import Sizes, eager, long_observed, long_unobserved, observed, unobserved

UNOBSERVED = "the same model, unobserved"
EAGER = "transformers, eager with output_attentions"
GPT2 = Sizes(batch=1, length=1024, size=768, heads=12, layers=4)
LONG = Sizes(batch=1, length=32_768, size=64, heads=1)
TINY = Sizes(batch=2, length=7, size=12, heads=3)
LIMIT = 8_192  # megabytes, after which a peer is stopped

CLAIM = Claim(
    "Observing GPT-2",
    (
        Timed(
            "1 × 1,024 × 768, 12 heads, 4 layers, entropy, mass and top 8, forward",
            GPT2,
            tiny=TINY,
            ours=observed,
            peers={EAGER: eager},
            also={UNOBSERVED: unobserved},
            bounds=(Bound(UNOBSERVED, most=1.3), Bound(EAGER, least=1.0)),
        ),
        Weighed(
            "1 × 1,024 × 768, 12 heads, 4 layers, entropy, mass and top 8, peak memory",
            GPT2,
            tiny=TINY,
            ours=observed,
            peers={EAGER: eager},
            also={UNOBSERVED: unobserved},
            bounds=(Bound(EAGER, most=1.0),),
            limited={EAGER: LIMIT},
        ),
        Weighed(
            "one self-attention of 32,768, entropy, mass, top 8 and tiles, peak memory",
            LONG,
            tiny=TINY,
            ours=long_observed,
            peers={},
            also={UNOBSERVED: long_unobserved},
            bounds=(),
            most=500,
        ),
    ),
)
