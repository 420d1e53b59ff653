"""Additive attention in memory that is linear in the length."""

from dataclasses import replace

from benchmarks.claim import Bound, Claim, Contender, MemoryCase
from benchmarks.contenders.additive import AdditiveSizes, keras, ours, textbook

HALF = "regard at half the length"
LIMIT = 8_192  # megabytes, after which a peer is stopped: it would take what the machine has

ARENAS = (
    "the allocator: blocks are freed as they are done, but the C library keeps freed memory in the arenas of"
    " two threads, the one that goes forward and the one that goes backward."
)


def build_half(sizes: AdditiveSizes) -> Contender:
    """Build ours for half the queries and keys."""
    return ours(replace(sizes, queries=sizes.queries // 2, keys=sizes.keys // 2))


CLAIM = Claim(
    "Additive attention, peak memory",
    (
        MemoryCase(
            "1 × 4,096 × 4,096, hidden 128, forward + backward",
            AdditiveSizes(batch=1, queries=4096, keys=4096, hidden=128),
            tiny=AdditiveSizes(batch=2, queries=64, keys=64, hidden=16),
            ours=ours,
            peers={"textbook": textbook, "Keras": keras},
            also={HALF: build_half},
            bounds=(Bound(HALF, most=2.0),),
            limit=ARENAS,
            limited={"textbook": LIMIT, "Keras": LIMIT},
            most=250,
            backward=True,
        ),
        MemoryCase(
            "1 × 8,192 × 8,192, hidden 128, forward + backward",
            AdditiveSizes(batch=1, queries=8192, keys=8192, hidden=128),
            tiny=AdditiveSizes(batch=2, queries=64, keys=64, hidden=16),
            ours=ours,
            peers={},
            also={HALF: build_half},
            bounds=(Bound(HALF, most=2.0),),
            limit=ARENAS,
            backward=True,
        ),
        MemoryCase(
            "1 × 1,024 × 1,024, hidden 128, forward + backward",
            AdditiveSizes(batch=1, queries=1024, keys=1024, hidden=128),
            tiny=AdditiveSizes(batch=2, queries=64, keys=64, hidden=16),
            ours=ours,
            peers={"textbook": textbook, "Keras": keras},
            bounds=(),
            limited={"textbook": LIMIT, "Keras": LIMIT},
            backward=True,
        ),
    ),
)
