"""How time and memory grow with the length, for every backend that takes as many queries as one likes."""

import regard
from benchmarks.claim import Claim, Curve, Growth
from benchmarks.contenders.growing import WINDOW, additive, backend

CLAIM = Claim(
    "Growth with the length",
    growth=Growth(
        {
            "eager": Curve(backend("eager"), longest=8_192),
            "sdpa": Curve(backend("sdpa")),
            "local": Curve(backend("local", mask=regard.Window(before=WINDOW - 1, after=0))),
            "linear": Curve(
                backend("linear", score=regard.Features(), mask=regard.Causal(), normalizer=regard.RowTotal())
            ),
            "stream": Curve(backend("stream", score=additive())),
            "rows": Curve(backend("rows", normalizer=regard.Sparsemax())),
            "flex": Curve(backend("flex"), longest=8_192, backward=False),
        }
    ),
)
