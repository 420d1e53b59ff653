"""A window is computed in time that is linear in the length."""

from benchmarks.claim import FASTEST, Bound, Claim, TimeCase
from benchmarks.contenders.dot import DotSizes, window, window_dense, window_float, window_half

HALF = "regard at 16,384"
TINY = DotSizes(batch=2, heads=3, length=10, dim=7, window=3)

CLAIM = Claim(
    "Window of 256 keys",
    (
        TimeCase(
            "length 16,384, 1 head, dim 64, forward + backward",
            DotSizes(batch=1, heads=1, length=16_384, dim=64, window=256),
            tiny=TINY,
            ours=window,
            peers={"SDPA with a mask": window_dense, "SDPA with a float mask": window_float},
            bounds=(Bound(FASTEST, least=20),),
            backward=True,
        ),
        TimeCase(
            "length 32,768, 1 head, dim 64, forward + backward",
            DotSizes(batch=1, heads=1, length=32_768, dim=64, window=256),
            tiny=TINY,
            ours=window,
            peers={},
            also={HALF: window_half},
            bounds=(Bound(HALF, most=2.2),),
            backward=True,
        ),
    ),
)
