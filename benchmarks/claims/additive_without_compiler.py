"""Where no C++ compiler is found, the same form in blocks of torch operations."""

from benchmarks.claim import FASTEST, Bound, Claim, TimeCase
from benchmarks.contenders.additive import PEERS, AdditiveSizes, ours, tanh_alone

SIZES = AdditiveSizes(batch=8, queries=256, keys=256, hidden=128)
TINY = AdditiveSizes(batch=2, queries=5, keys=7, hidden=11)

TANH = "torch.tanh of every sum alone"
LIMIT = (
    "torch's own operations, each a pass over a block in the cache; the tanh alone of all sums takes a good part of the"
    " fastest peer's time, and a form without it takes as many passes."
)

CLAIM = Claim(
    "Additive attention without a compiler",
    (
        TimeCase(
            "8 × 256 × 256, hidden 128, forward",
            SIZES,
            tiny=TINY,
            ours=ours,
            peers=PEERS,
            also={TANH: tanh_alone},
            limit=LIMIT,
            bounds=(Bound(FASTEST, least=4),),
        ),
        TimeCase(
            "8 × 256 × 256, hidden 128, forward + backward",
            SIZES,
            tiny=TINY,
            ours=ours,
            peers=PEERS,
            limit=LIMIT,
            bounds=(Bound(FASTEST, least=2),),
            backward=True,
        ),
    ),
    environment={"REGARD_COMPILER": "none"},
)
