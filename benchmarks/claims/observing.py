"""Looking at a model while it runs, against not looking and against leaving the fused path to get weights."""

from benchmarks.claim import Bound, Claim, MemoryCase, TimeCase
from benchmarks.contenders.observation import (
    ModelSizes,
    gpt2_eager,
    gpt2_observed,
    gpt2_unobserved,
    long_observed,
    long_unobserved,
)

UNOBSERVED = "the same model, unobserved"
EAGER = "transformers, eager with output_attentions"
GPT2 = ModelSizes(batch=1, length=1024, size=768, heads=12, layers=4)
LONG = ModelSizes(batch=1, length=32_768, size=64, heads=1)
TINY = ModelSizes(batch=2, length=7, size=12, heads=3)
LIMIT = 8_192  # megabytes, after which a peer is stopped

CLAIM = Claim(
    "Observing GPT-2",
    (
        TimeCase(
            "1 × 1,024 × 768, 12 heads, 4 layers, entropy, mass and top 8, forward",
            GPT2,
            tiny=TINY,
            ours=gpt2_observed,
            peers={EAGER: gpt2_eager},
            also={UNOBSERVED: gpt2_unobserved},
            bounds=(Bound(UNOBSERVED, most=1.3), Bound(EAGER, least=1.0)),
        ),
        MemoryCase(
            "1 × 1,024 × 768, 12 heads, 4 layers, entropy, mass and top 8, peak memory",
            GPT2,
            tiny=TINY,
            ours=gpt2_observed,
            peers={EAGER: gpt2_eager},
            also={UNOBSERVED: gpt2_unobserved},
            bounds=(Bound(EAGER, most=1.0),),
            limited={EAGER: LIMIT},
        ),
        MemoryCase(
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
