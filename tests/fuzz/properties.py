"""The properties that every trial must have, whatever its parts."""

import contextlib
import math
import warnings
from collections.abc import Callable

import torch

from regard.algebra.catalog import Sizes
from regard.compute import verification
from regard.compute.attend import AttentionResult
from regard.errors import InputError, PlanError
from tests.fuzz.nearby import compute_nearby, is_decided_by_rounding
from tests.fuzz.reference import BuiltTrial, find_worst
from tests.fuzz.transforms import TRANSFORMS
from tests.fuzz.trial import Failure, Trial, format_error, use_small_blocks

SUMS = ("Softmax(", "Sparsemax(", "Entmax(", "tempered", "sparsemax", "entmax", '"softmax"')  # to one, or to nothing
ULPS = 32  # of a row that is to sum to one
BackendCheck = Callable[[BuiltTrial, str], Failure | None]


def check_trial(trial: Trial) -> Failure | None:
    """Return the first property that does not hold, or None."""
    with warnings.catch_warnings(), use_small_blocks(trial):
        warnings.simplefilter("ignore")
        try:
            built = BuiltTrial(trial)
        except Exception as error:
            return None if is_ambiguous(error) else Failure("raises", "eager", format_error(error))
        if not built.defined:
            return None
        if is_decided_by_rounding(built, torch.bfloat16 if trial.transform == "autocast" else built.dtype):
            return check_backends(built, _check_sums)
        return TRANSFORMS.get(trial.transform, check_backends)(built)


AMBIGUOUS = ("expected no doubt whether", "expected an axis of queries behind")


def is_ambiguous(error: Exception) -> bool:
    """Return whether the shapes were rejected because they could be meant in two ways."""
    return isinstance(error, InputError) and any(words in str(error) for words in AMBIGUOUS)


def list_backends(built: BuiltTrial) -> list[str]:
    """Return the backends to try: all that support the call, or the one that the trial names."""
    trial = built.trial
    if trial.backend != "all":
        return [trial.backend]
    sizes = Sizes(trial.dim, trial.key_dim, trial.value, trial.lead, trial.queries, trial.keys)
    able = verification.find_supported_backends(built.parts, sizes, dropout=trial.dropout, dtype=built.dtype)
    learned = any(tensor.requires_grad for tensor in built.parts.tensors())
    return ["auto", "eager", *(name for name in able if name != "flex" or not learned)]


def check_backends(built: BuiltTrial, check: BackendCheck | None = None) -> Failure | None:
    """Compare every backend with the definition, or by another check."""
    context = {"no_grad": torch.no_grad, "inference": torch.inference_mode}.get(
        built.trial.transform, contextlib.nullcontext
    )
    with context():
        for backend in list_backends(built):
            failure = _catch_errors(check or _compare_backend, built, backend)
            if failure is not None:
                return failure
    return None


def _catch_errors(check: BackendCheck, built: BuiltTrial, backend: str) -> Failure | None:
    try:
        return check(built, backend)
    except PlanError as error:
        return Failure("raises", backend, format_error(error)) if backend in ("auto", "eager") else None
    except Exception as error:
        return None if is_ambiguous(error) else Failure("raises", backend, format_error(error))


def _compare_backend(built: BuiltTrial, backend: str) -> Failure | None:
    found = built.run(backend)
    mismatch = built.compare(found, backend)
    if mismatch is not None and not built.refined:
        built.refine()
        found = built.run(backend)  # again: its graph can be used once
        mismatch = built.compare(found, backend)
    if mismatch is not None and mismatch[0].startswith("gradient"):
        nearby = compute_nearby(built, found)
        mismatch = mismatch if nearby is None else built.compare_gradients(built.run(backend), backend, nearby)
    if mismatch is not None:
        name, error, allowed = mismatch
        return Failure(name, backend, f"error {error:.2e}, allowed {allowed:.2e}")
    failure = check_weights(built, found, backend)
    if failure is not None and not built.refined:
        built.refine()
        failure = check_weights(built, found, backend)
    return failure


def check_weights(built: BuiltTrial, found: AttentionResult, backend: str) -> Failure | None:
    """Check that rows sum to one or are empty, that output is weights times values, and all summaries."""
    trial, dense = built.trial, found.weights.dense().detach().double()
    if not dense.numel():
        return None
    rows = torch.ones(dense.shape[:-1], dtype=torch.bool) if built.rows is None else built.rows.expand(dense.shape[:-1])
    error_of_one = built.compute_limit(0.0 if built.budget is None else built.budget.weights, torch.ones(()), backend)
    eps = torch.finfo(found.weights.dense().dtype).eps
    spread = trial.keys * error_of_one + ULPS * eps
    failure = _check_sums(built, backend, found, spread)
    if failure is not None:
        return failure
    if trial.is_soft:
        wrong = _check_product(built, found, dense, rows, error_of_one)
        if wrong:
            return Failure("product", backend, wrong)
    # From totals a weight is exp(score − total): as exact as a score that is rounded once.
    totals = 2 * eps * built.largest_score() if found.weights.totals is not None else 0.0
    return _check_summary(built, found, dense, rows, spread + totals, backend)


def _check_sums(
    built: BuiltTrial, backend: str, found: AttentionResult | None = None, spread: float | None = None
) -> Failure | None:
    """Check that rows of weights sum to one, or are empty."""
    trial = built.trial
    weights = (built.run(backend) if found is None else found).weights.dense().detach()
    dense, spread = weights.double(), ULPS * torch.finfo(weights.dtype).eps if spread is None else spread
    if trial.aggregate != "Soft()" or not any(name in trial.normalizer for name in SUMS) or not dense.numel():
        return None
    sums, rows = dense.sum(-1), None if built.rows is None else built.rows.expand(dense.shape[:-1])
    some = built.parts.mask.table(trial.queries, trial.keys).any(-1).expand(sums.shape)
    error = find_worst(sums[..., None], some.double()[..., None], rows)
    if error <= spread:
        return None
    return Failure("sums", backend, f"a row of weights is off one by {error:.2e}, allowed {spread:.2e}")


def _check_product(
    built: BuiltTrial, found: AttentionResult, dense: torch.Tensor, rows: torch.Tensor, error_of_one: float
) -> str | None:
    """Check that the output is weights times values, and that a row that sees a NaN has NaN in both."""
    values = built.clean[2].detach().double()
    product, own = dense @ values, 0.0 if built.budget is None else built.budget.output
    allowed = built.compute_limit(own, built.true.attended.output, "sdpa") + error_of_one * float(
        values.abs().sum(-2).max()
    )
    error = find_worst(product, found.output, rows)
    if not error <= allowed:
        return f"output and weights @ value differ by {error:.2e}, allowed {allowed:.2e}"
    if built.trial.hidden == "nan" and not bool(rows.all()):
        broken = torch.isnan(dense @ built.dirty[2].detach().double()).any(-1)
        if not torch.equal(broken[~rows], torch.isnan(found.output).any(-1)[~rows]):
            return "a row that sees NaN is NaN in the output and not in weights @ value, or the other way round"
    return None


def _check_summary(
    built: BuiltTrial, found: AttentionResult, dense: torch.Tensor, rows: torch.Tensor, spread: float, backend: str
) -> Failure | None:
    """Check that tiles, largest weights, entropy and received weight are those of the whole table."""
    trial = built.trial
    if built.parts.aggregate.random and not trial.is_soft:
        return None
    middle, k = slice(trial.queries // 3, trial.queries), min(2, trial.keys)
    columns = slice(trial.keys // 4, max(1, trial.keys // 4, 3 * trial.keys // 4))
    summary = found.weights.summary(k)
    entropy = torch.special.entr(dense).sum(-1)
    loss = 4 * spread * max(1.0, math.log(1 / max(spread, 1e-300)))  # the slope of −w log w where w is next to nothing
    pairs = {
        "tile": (found.weights.tile(middle, columns), dense[..., middle, columns], spread, rows[..., middle]),
        "top": (summary.top.weights, dense.topk(k, -1).values, spread, rows),
        "entropy": (summary.entropy[..., None], entropy[..., None], loss * max(1.0, float(entropy.max())), rows),
    }
    if bool(rows.all()):
        pairs["received"] = summary.received[..., None], dense.sum(-2)[..., None], trial.queries * spread, None
    for name, (answer, true, allowed, chosen) in pairs.items():
        if answer.shape != true.shape:
            return Failure(name, backend, f"shape {tuple(answer.shape)} for {tuple(true.shape)}")
        error = find_worst(answer, true, chosen)
        if not error <= allowed:
            return Failure(name, backend, f"error {error:.2e} against dense(), allowed {allowed:.2e}")
    return None
