"""Shrink a failing trial to the smallest and plainest one that fails in the same way."""

import re
import time
from collections.abc import Iterator

from tests.fuzz.generator import change
from tests.fuzz.properties import check_trial
from tests.fuzz.trial import Failure, Trial

PLAIN = Trial()
PARTS = ("aggregate", "bias", "normalizer", "mask", "score")
SETTINGS = ("transform", "dropout", "small_blocks", "column", "hidden", "where", "mixed", "offset", "scale", "layouts")
SIZES = ("queries", "keys", "dim", "value")


def is_same_failure(failure: Failure | None, first: Failure) -> bool:
    """Return whether `failure` is the one that is being shrunk."""
    if failure is None or failure.property != first.property:
        return False
    return failure.property != "raises" or remove_numbers(failure.message) == remove_numbers(first.message)


def remove_numbers(message: str) -> str:
    """Return a message with every number replaced: sizes do not make it another message."""
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", message)[:80]


def shrink(trial: Trial, failure: Failure, *, seconds: float = 20.0) -> tuple[Trial, Failure]:
    """Return the smallest failing trial found in that time, and its failure."""
    end, first = time.monotonic() + seconds, failure
    trial = change(trial, backend=failure.backend)
    found = check_trial(trial)
    if not is_same_failure(found, first):
        return change(trial, backend="all"), failure
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for candidate in list_candidates(trial):
            if time.monotonic() > end:
                break
            found = check_trial(candidate)
            if is_same_failure(found, first):
                trial, failure, smaller = candidate, found, True  # type: ignore[assignment]
                break
    return trial, failure


def list_candidates(trial: Trial) -> Iterator[Trial]:
    """Yield trials that are simpler in one way, the largest steps first."""
    yield from _drop_leads(trial)
    for name in PARTS + SETTINGS:
        if getattr(trial, name) != getattr(PLAIN, name):
            yield change(trial, **{name: getattr(PLAIN, name)})
    yield from _shorten_parts(trial)
    for index in range(3):
        if trial.layouts[index] != "plain":
            yield change(trial, layouts=(*trial.layouts[:index], "plain", *trial.layouts[index + 1 :]))
    yield from _shrink_sizes(trial)
    for dtype in ("float64", "float32"):
        if trial.dtype not in (dtype, "float64"):
            yield change(trial, dtype=dtype)


def _shorten_parts(trial: Trial) -> Iterator[Trial]:
    """Yield trials with a piece of a sum, of a multiple or of a composed mask."""
    for name in ("score", "mask"):
        pieces = re.findall(r'(?:SCORES|MASKS)\["[^"]+"\]\(s\)', getattr(trial, name))
        yield from (change(trial, **{name: piece}) for piece in pieces if piece != getattr(trial, name))
    if trial.mask.startswith("("):
        yield change(trial, mask=trial.mask[1:-1])


def _shrink_sizes(trial: Trial) -> Iterator[Trial]:
    for name in SIZES:
        now = getattr(trial, name)
        for size in dict.fromkeys((1, 2, now // 4, now // 2, now - 1)):
            if 0 < size < now:
                wider = {"key_dim": trial.key_dim - now + size} if name == "dim" else {}
                column = {"column": min(trial.column, size - 1)} if name == "keys" else {}
                yield change(trial, **{name: size}, **wider, **column)


def _drop_leads(trial: Trial) -> Iterator[Trial]:
    """Yield trials with fewer lead axes, shared or not. The last axis stays if a part has a number for each head."""
    heads = trial.lead[-1:] if "torch.tensor(" in trial.score + trial.normalizer else ()
    for lead in dict.fromkeys(((), heads, trial.lead[:1], trial.lead[1:], tuple(min(2, size) for size in trial.lead))):
        if lead != trial.lead and lead[-len(heads) or len(lead) :] == heads:
            yield change(trial, lead=lead, leads=(lead,) * 3)
    if set(trial.leads) != {trial.lead}:
        yield change(trial, leads=(trial.lead,) * 3)
        for index in range(3):
            if trial.leads[index] != trial.lead:
                yield change(trial, leads=(*trial.leads[:index], trial.lead, *trial.leads[index + 1 :]))
