"""α-entmax by Newton's method, against bisection."""

import torch

import regard
from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.normalizers import ScoreSizes, ours, package

PEER = "entmax_bisect"
SIZES = ScoreSizes(batch=8, heads=8, queries=512, keys=512)
TINY = ScoreSizes(batch=2, heads=8, queries=5, keys=7)
BOUNDS = (Bound(PEER, least=5),)

fixed = 1.75
learned = torch.linspace(1.25, 2.0, SIZES.heads).requires_grad_()

CLAIM = Claim(
    "α-entmax",
    (
        TimeCase(
            "α = 1.75, 8 × 8 × 512 × 512, forward + backward",
            SIZES,
            tiny=TINY,
            ours=ours(regard.Entmax(fixed)),
            peers={PEER: package(PEER, alpha=fixed)},
            bounds=BOUNDS,
            backward=True,
        ),
        TimeCase(
            "α learned for each head, 8 × 8 × 512 × 512, forward + backward",
            SIZES,
            tiny=TINY,
            ours=ours(regard.Entmax(learned), learned),
            peers={PEER: package(PEER, learned)},
            bounds=BOUNDS,
            backward=True,
        ),
    ),
)
