"""A single decoding step is as fast as the best peer's or faster."""

from benchmarks.claim import FASTEST, Bound, Claim, TimeCase
from benchmarks.contenders.additive import AdditiveSizes
from benchmarks.contenders.additive_step import PEERS, layer, ours

CLAIM = Claim(
    "Additive attention, one decoding step",
    (
        TimeCase(
            "32 × 1 query × 64 keys, padded, hidden 256",
            AdditiveSizes(batch=32, queries=1, keys=64, hidden=256),
            tiny=AdditiveSizes(batch=3, queries=1, keys=7, hidden=11),
            ours=ours,
            peers=PEERS,
            also={"regard's layer": layer},
            bounds=(Bound(FASTEST, least=1.5),),
        ),
    ),
)
