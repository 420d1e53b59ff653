"""Nadaraya–Watson regression in one fused call, against the difference of each pair."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.dot import DotSizes, gaussian, gaussian_written_out

CLAIM = Claim(
    "Gaussian attention against the difference written out",
    (
        TimeCase(
            "2 × 8 × 256 × 256, dim 64, forward",
            DotSizes(batch=2, heads=8, length=256, dim=64),
            tiny=DotSizes(batch=2, heads=3, length=5, dim=7),
            ours=gaussian,
            peers={"textbook": gaussian_written_out},
            bounds=(Bound("textbook", least=50),),
        ),
    ),
)
