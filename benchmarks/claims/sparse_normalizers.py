"""Sparsemax and entmax-1.5 without sorting."""

import regard
from benchmarks.claim import FASTEST, Bound, Claim, TimeCase
from benchmarks.contenders.normalizers import ScoreSizes, copy_scores, ours, package, softmax

SOFTMAX = "torch.softmax"
COPY = "the scores read and written once, each way"
LIMIT = "the table itself: reading and writing it takes a good part of the time."


def build_case(name: str, normalizer: regard.Normalizer, function: str) -> TimeCase[ScoreSizes]:
    """Build the case of one normalizer against the package's, with all keys sorted and with the largest 64."""
    return TimeCase(
        f"{name}, 8 × 8 × 512 × 512, forward + backward",
        ScoreSizes(batch=8, heads=8, queries=512, keys=512),
        tiny=ScoreSizes(batch=2, heads=3, queries=5, keys=7),
        ours=ours(normalizer),
        peers={"entmax": package(function), "entmax, k = 64": package(function, k=64)},
        also={SOFTMAX: softmax, COPY: copy_scores},
        limit=LIMIT,
        bounds=(Bound(FASTEST, least=5), Bound(SOFTMAX, most=6)),
        backward=True,
    )


CLAIM = Claim(
    "Sparse normalizers",
    (build_case("sparsemax", regard.Sparsemax(), "sparsemax"), build_case("entmax-1.5", regard.Entmax15(), "entmax15")),
)
