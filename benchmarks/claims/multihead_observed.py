"""The multi-head layer with its weights looked at, against layers that are asked for the same of theirs."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.multihead import (
    LayerSizes,
    keras_weights,
    ours_dense,
    ours_summary,
    torch_summary,
    torch_weights,
    transformers_weights,
    x_transformers_weights,
)

TORCH = "nn.MultiheadAttention with weights"
LOOKED = "the same, then entropy and top 5 of them"
TINY = LayerSizes(batch=2, length=7, size=12, heads=3)


def name_case(length: int, looking: str, *, backward: bool) -> str:
    """Return the name of a case."""
    return f"4 × {length:,} × 512, 8 heads, {looking}, forward{' + backward' if backward else ''}"


def build_summary_case(length: int, *, backward: bool) -> TimeCase[LayerSizes]:
    """Entropy and top 5. The peer looks at the weights that it gives; without the looking it is shown beside."""
    return TimeCase(
        name_case(length, "entropy and top 5", backward=backward),
        LayerSizes(batch=4, length=length, size=512, heads=8),
        tiny=TINY,
        ours=ours_summary,
        peers={LOOKED: torch_summary},
        also={TORCH: torch_weights},
        bounds=(Bound(LOOKED, least=1.5),),
        backward=backward,
    )


def build_dense_case(length: int, *, backward: bool) -> TimeCase[LayerSizes]:
    """Build the case of all weights as a table."""
    return TimeCase(
        name_case(length, "all weights", backward=backward),
        LayerSizes(batch=4, length=length, size=512, heads=8),
        tiny=TINY,
        ours=ours_dense,
        peers={
            TORCH: torch_weights,
            "Keras": keras_weights,
            "x-transformers": x_transformers_weights,
            "transformers": transformers_weights,
        },
        bounds=(Bound(TORCH, least=1.0),),
        backward=backward,
    )


CLAIM = Claim(
    "Multi-head layer, weights looked at",
    tuple(
        build(length, backward=backward)
        for build in (build_summary_case, build_dense_case)
        for length, backward in ((256, False), (256, True), (1024, True))
    ),
)
