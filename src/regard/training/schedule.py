"""The rate as a pure function of the step: nothing to save, nothing to restore."""

import math

from regard.errors import wrong
from regard.training.settings import Schedule


def compute_rate(step: int, peak: float, schedule: Schedule, total: int | None) -> float:
    r"""Return the rate of step 1, 2, ….

    $$ r_t = p \cdot \min(t / w, \; f(t)) $$

    with $p$ = `peak`, $w$ = `schedule.warmup`, $t$ = `step`, and $f$ = 1 (constant), $\sqrt{w / t}$ (inverse
    square root; Vaswani et al. 2017, eq. 3, its constant folded into the peak) or the half cosine from 1
    at $w$ down to `schedule.floor` at `total` (Loshchilov & Hutter 2017, eq. 5).

    >>> [compute_rate(step, 1.0, Schedule("inverse-square-root", warmup=4), None) for step in (1, 4, 16)]
    [0.25, 1.0, 0.5]
    """
    warmup = max(1, schedule.warmup)
    if step < warmup:
        return peak * step / warmup
    match schedule.shape:
        case "constant":
            return peak
        case "inverse-square-root":
            return peak * math.sqrt(warmup / step)
        case "cosine":
            if total is None:
                raise wrong("schedule.shape", "cosine", "a known end", "set stop.steps or stop.epochs")
            done = min(1.0, (step - warmup) / max(1, total - warmup))
            return peak * (schedule.floor + (1 - schedule.floor) * (1 + math.cos(math.pi * done)) / 2)
