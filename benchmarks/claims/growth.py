"""How time and memory grow with the length, for every backend that takes as many queries as one likes."""

import regard
from benchmarks.claim import Claim, Curve, Growth
from benchmarks.contenders.backends import WINDOW, build_additive_score, build_backend

CLAIM = Claim(
    "Growth with the length",
    growth=Growth(
        {
            "eager": Curve(build_backend("eager"), longest=8_192),
            "sdpa": Curve(build_backend("sdpa")),
            "local": Curve(build_backend("local", mask=regard.Window(before=WINDOW - 1, after=0))),
            "linear": Curve(
                build_backend("linear", score=regard.FeatureDot(), mask=regard.Causal(), normalizer=regard.RowTotal())
            ),
            "stream": Curve(build_backend("stream", score=build_additive_score())),
            "rows": Curve(build_backend("rows", normalizer=regard.Sparsemax())),
            "flex": Curve(build_backend("flex"), longest=8_192, backward=False),
        }
    ),
)
