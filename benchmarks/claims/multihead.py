"""The multi-head layer against torch's own without weights."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.multihead import LayerSizes, keras, ours, torch_plain, transformers, x_transformers

TORCH = "nn.MultiheadAttention"


def build_case(length: int) -> TimeCase[LayerSizes]:
    """Build the case of one length."""
    return TimeCase(
        f"4 × {length:,} × 512, 8 heads, forward + backward",
        LayerSizes(batch=4, length=length, size=512, heads=8),
        tiny=LayerSizes(batch=2, length=5, size=12, heads=3),
        ours=ours,
        peers={TORCH: torch_plain, "Keras": keras, "x-transformers": x_transformers, "transformers": transformers},
        bounds=(Bound(TORCH, least=1.0),),
        backward=True,
    )


CLAIM = Claim("Multi-head layer, weights not looked at", (build_case(256), build_case(1024)))
