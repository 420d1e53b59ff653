"""Additive attention needs no tanh for each pair: forward and backward."""

from benchmarks.claim import FASTEST, Bound, Claim, TimeCase
from benchmarks.contenders.additive import AROUND, LIMIT, PEERS, AdditiveSizes, ours, without_scores

TINY = AdditiveSizes(batch=2, queries=5, keys=7, hidden=11)
BOUNDS = (Bound(FASTEST, least=20),)

CLAIM = Claim(
    "Additive attention, forward + backward",
    (
        TimeCase(
            "8 × 256 × 256, hidden 128",
            AdditiveSizes(batch=8, queries=256, keys=256, hidden=128),
            tiny=TINY,
            ours=ours,
            peers=PEERS,
            also={AROUND: without_scores},
            limit=LIMIT,
            bounds=BOUNDS,
            backward=True,
        ),
        TimeCase(
            "1 × 1,024 × 1,024, hidden 128",
            AdditiveSizes(batch=1, queries=1024, keys=1024, hidden=128),
            tiny=TINY,
            ours=ours,
            peers=PEERS,
            also={AROUND: without_scores},
            limit=LIMIT,
            bounds=BOUNDS,
            backward=True,
        ),
    ),
)
