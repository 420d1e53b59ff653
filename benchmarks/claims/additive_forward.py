"""Additive attention needs no tanh for each pair: forward."""

from benchmarks.claim import FASTEST, Bound, Claim, TimeCase
from benchmarks.contenders.additive import AROUND, LIMIT, PEERS, AdditiveSizes, ours, without_scores

CLAIM = Claim(
    "Additive attention, forward",
    (
        TimeCase(
            "8 × 256 × 256, hidden 128",
            AdditiveSizes(batch=8, queries=256, keys=256, hidden=128),
            tiny=AdditiveSizes(batch=2, queries=5, keys=7, hidden=11),
            ours=ours,
            peers=PEERS,
            also={AROUND: without_scores},
            limit=LIMIT,
            bounds=(Bound(FASTEST, least=40),),
        ),
    ),
)
