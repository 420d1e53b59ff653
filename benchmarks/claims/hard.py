"""Hard attention, which reads one value for each query, takes less time than soft attention."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders import sparse
from benchmarks.contenders.dot import DotSizes

SQUARE, HEADS, BATCH = DotSizes(1, 1, 1024, 64), DotSizes(1, 8, 1024, 64), DotSizes(16, 8, 256, 64)
TINY = DotSizes(batch=2, heads=3, length=10, dim=7)
SOFT, TEXTBOOK = "SDPA, soft", "softmax, then the largest"


def build_case(name: str, sizes: DotSizes) -> TimeCase[DotSizes]:
    """Build the case of one size, in evaluation."""
    return TimeCase(
        name,
        sizes,
        tiny=TINY,
        ours=sparse.hard,
        peers={},
        also={SOFT: sparse.soft, TEXTBOOK: sparse.hard_textbook},
        bounds=(Bound(SOFT, most=0.8),),
        limit="the product of queries and keys, which soft attention computes by a kernel that keeps it in the cache.",
    )


def build_learned_case(name: str, sizes: DotSizes) -> TimeCase[DotSizes]:
    """Build the case of one size, with gradients."""
    return TimeCase(
        f"{name}, forward + backward",
        sizes,
        tiny=TINY,
        ours=sparse.hard_learned,
        peers={},
        also={SOFT: sparse.full_attention},
        bounds=(Bound(SOFT, most=1.3),),
        backward=True,
        limit="soft attention itself, whose gradient it takes: its weights and its backward are computed as well.",
    )


CLAIM = Claim(
    "Hard attention",
    (
        build_case("1,024 × 1,024, 1 head, dim 64", SQUARE),
        build_case("1,024 × 1,024, 8 heads, dim 64", HEADS),
        build_case("16 × 8 heads × 256 × 256, dim 64", BATCH),
        build_learned_case("1,024 × 1,024, 8 heads, dim 64", HEADS),
        build_learned_case("16 × 8 heads × 256 × 256, dim 64", BATCH),
    ),
)
