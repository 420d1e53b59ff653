"""What every backend is given and gives back."""

from collections.abc import Callable
from typing import NamedTuple

from regard.algebra.parts import AttentionCall
from regard.algebra.scores.base import DotForm
from regard.algebra.shapes import Float, Tensor


class BackendResult(NamedTuple):
    """The output; the log-probability of picks; and, where a kernel gave them, the totals that weights come from."""

    output: Float[Tensor, "*lead query value"]
    log_prob: Float[Tensor, "*lead query"] | None = None
    form: DotForm | None = None
    total: Float[Tensor, "*lead query"] | None = None
    lost_digits: bool = False  # the result is not exact enough to be given away


BackendFunction = Callable[[AttentionCall], BackendResult]
