"""Going through the algebra costs next to nothing over the bare function."""

from benchmarks.claim import Bound, Claim, TimeCase
from benchmarks.contenders.dot import DotSizes, dot, sdpa

LIMIT = (
    "Python: looking the plan up and folding the parts takes a fixed time, which longer sequences hide; what is left at"
    " those is the spread of two runs of one kernel."
)


def build_case(length: int, *, backward: bool) -> TimeCase[DotSizes]:
    """Build the case of one length."""
    return TimeCase(
        f"2 × 8 × {length:,} × {length:,}, dim 64, forward{' + backward' if backward else ''}",
        DotSizes(batch=2, heads=8, length=length, dim=64),
        tiny=DotSizes(batch=2, heads=3, length=5, dim=7),
        ours=dot,
        peers={"SDPA": sdpa},
        bounds=(Bound("SDPA", least=0.97),),
        backward=backward,
        limit=LIMIT,
    )


CLAIM = Claim(
    "Dot product against bare SDPA",
    (
        build_case(256, backward=False),
        build_case(256, backward=True),
        build_case(1024, backward=False),
        build_case(1024, backward=True),
        build_case(2048, backward=False),
    ),
)
