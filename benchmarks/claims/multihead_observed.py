"""The multi-head layer with its weights looked at, against those that must leave the fused path to have any."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.multihead import (
    Sizes,
    keras_weights,
    ours_summary,
    torch_summary,
    torch_weights,
    transformers_weights,
    x_transformers_weights,
)

TORCH = "nn.MultiheadAttention with weights"
LIMIT = (
    "the looking: entropy and top 5 are a pass over all weights that the peer, which looks at nothing, does not"
    " make; asked for the same, it is the slower one."
)
LOOKED = "the same, then entropy and top 5 of them"


def build_case(length: int, *, backward: bool) -> TimeCase[Sizes]:
    """One length. The peers give the weights; only the last computes from them what ours is asked for."""
    return TimeCase(
        f"4 × {length:,} × 512, 8 heads, entropy and top 5, forward{' + backward' if backward else ''}",
        Sizes(batch=4, length=length, size=512, heads=8),
        tiny=Sizes(batch=2, length=7, size=12, heads=3),
        ours=ours_summary,
        peers={
            TORCH: torch_weights,
            "Keras": keras_weights,
            "x-transformers": x_transformers_weights,
            "transformers": transformers_weights,
        },
        also={LOOKED: torch_summary},
        limit=LIMIT,
        bounds=(Bound(TORCH, least=1.0),),
        backward=backward,
    )


CLAIM = Claim(
    "Multi-head layer, weights looked at",
    (build_case(256, backward=False), build_case(256, backward=True), build_case(1024, backward=True)),
)
