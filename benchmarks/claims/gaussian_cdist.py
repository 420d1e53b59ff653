"""Nadaraya–Watson regression in one fused call, against `torch.cdist`."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.dot import DotSizes, gaussian, gaussian_cdist

TINY = DotSizes(batch=2, heads=3, length=5, dim=7)
PEERS = {"torch.cdist": gaussian_cdist}

CLAIM = Claim(
    "Gaussian attention against torch.cdist",
    (
        TimeCase(
            "2 × 8 × 1,024 × 1,024, dim 64, forward",
            DotSizes(batch=2, heads=8, length=1024, dim=64),
            tiny=TINY,
            ours=gaussian,
            peers=PEERS,
            bounds=(Bound("torch.cdist", least=4),),
        ),
        TimeCase(
            "2 × 8 × 256 × 256, dim 64, forward",
            DotSizes(batch=2, heads=8, length=256, dim=64),
            tiny=TINY,
            ours=gaussian,
            peers=PEERS,
            bounds=(Bound("torch.cdist", least=1.0),),
        ),
    ),
)
