"""Masks that leave most keys out cost what the keys cost that they leave in."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders import sparse
from benchmarks.contenders.dot import DotSizes, window, window_float

ALONE, CHUNKS, DENSE, FULL = (
    "the window alone",
    "SDPA in chunks by hand",
    "SDPA with a float mask",
    "SDPA over all pairs",
)
HALF, EACH = "regard at 16,384", "SDPA for each document"
SIZES, TINY = DotSizes(1, 1, 16_384, 64, 256), DotSizes(2, 3, 40, 7, 5)

CLAIM = Claim(
    "Sparse masks at length 16,384",
    (
        TimeCase(
            "window of 256 and 4 global keys, dim 64, forward + backward",
            SIZES,
            tiny=TINY,
            ours=sparse.global_tokens,
            peers={},
            also={ALONE: window, CHUNKS: sparse.global_tokens_in_chunks, DENSE: window_float},
            bounds=(Bound(ALONE, most=1.5),),
            backward=True,
        ),
        TimeCase(
            "the same at 32,768",
            DotSizes(1, 1, 32_768, 64, 256),
            tiny=TINY,
            ours=sparse.global_tokens,
            peers={},
            also={HALF: sparse.global_tokens_half},
            bounds=(Bound(HALF, most=2.2),),
            backward=True,
        ),
        TimeCase(
            "1 in 16 blocks of 128, dim 64, forward + backward",
            SIZES,
            tiny=TINY,
            ours=sparse.block_table,
            peers={},
            also={FULL: sparse.full_attention},
            bounds=(Bound(FULL, least=8),),
            backward=True,
        ),
        TimeCase(
            "documents of 64 to 1,024 packed into one sequence, dim 64, forward + backward",
            SIZES,
            tiny=TINY,
            ours=sparse.documents,
            peers={},
            also={EACH: sparse.documents_alone, FULL: sparse.full_attention},
            bounds=(Bound(EACH, most=1.2),),
            backward=True,
        ),
    ),
)
