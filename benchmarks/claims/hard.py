"""Hard attention, which reads one value for each query, takes less time than soft attention."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders import sparse
from benchmarks.contenders.dot import Sizes

SOFT, TEXTBOOK = "SDPA, soft", "softmax, then the largest"


def build_case(name: str, sizes: Sizes) -> TimeCase[Sizes]:
    """One size."""
    return TimeCase(
        name,
        sizes,
        tiny=Sizes(batch=2, heads=3, length=10, dim=7),
        ours=sparse.hard,
        peers={},
        also={SOFT: sparse.soft, TEXTBOOK: sparse.hard_textbook},
        bounds=(Bound(SOFT, most=0.8),),
        limit="the product of queries and keys, which soft attention computes by a kernel that keeps it in the cache.",
    )


CLAIM = Claim(
    "Hard attention in evaluation",
    (
        build_case("1,024 × 1,024, 1 head, dim 64", Sizes(1, 1, 1024, 64)),
        build_case("16 × 8 heads × 256 × 256, dim 64", Sizes(16, 8, 256, 64)),
    ),
)
