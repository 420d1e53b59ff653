"""The transforms of torch that a trial is run under, each compared with the definition."""

from collections.abc import Callable, Iterable

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from regard.algebra.parts import Parts
from regard.compute import verification
from regard.compute.attend import attend
from regard.compute.planning import BackendName
from regard.errors import RegardError
from tests.fuzz.nearby import compute_nearby
from tests.fuzz.reference import CLONES, BuiltTrial, PerturbedScore, Tensors, compute_truth, find_worst
from tests.fuzz.trial import Failure, format_error

Check = Callable[[BuiltTrial], Failure | None]
SECOND = 1e-7  # what second derivatives in float64 must reach, relative to the size of the numbers


def _call(built: BuiltTrial, tensors: Tensors) -> torch.Tensor:
    return verification.run_backend(built.parts, tensors, _one_backend(built)).output


def _one_backend(built: BuiltTrial) -> BackendName:
    return "auto" if built.trial.backend == "all" else built.trial.backend  # type: ignore[return-value]


def catch_errors(check: Check) -> Check:
    """Return the check of a transform that reports exceptions as failures, except errors of our own."""

    def check_quietly(built: BuiltTrial) -> Failure | None:
        try:
            return check(built)
        except RegardError:
            return None
        except Exception as error:
            return Failure("raises", _one_backend(built), format_error(error))

    return check_quietly


def check_vmap(built: BuiltTrial) -> Failure | None:
    """Check that mapping over a batch equals a call for each item."""
    stacked = [torch.stack([tensor, -tensor]).detach() for tensor in built.clean]
    found = torch.func.vmap(lambda *tensors: _call(built, tensors))(*stacked)
    single = torch.stack([_call(built, [tensor[index] for tensor in stacked]) for index in range(2)])
    return _compare_outputs("vmap", built, found, single)


def _compare_outputs(
    name: str, built: BuiltTrial, found: torch.Tensor, true: torch.Tensor, rows: torch.Tensor | None = None
) -> Failure | None:
    """Compare two outputs, each of which may err as much as a backend may; the budget is refined if they differ."""
    error = find_worst(found, true, rows)
    for refine in (False, True):
        if refine and not built.refined:
            built.refine()
        allowed = 2 * built.compute_limit(built.budget.output if built.budget else 0.0, true, "sdpa")
        if error <= allowed:
            return None
    return Failure(name, _one_backend(built), f"error {error:.2e}, allowed {allowed:.2e}")


def _loss(output: torch.Tensor) -> torch.Tensor:
    return verification._mix(output, torch.Generator().manual_seed(3))


def _find_worst_slope(pairs: Iterable[tuple[torch.Tensor | None, torch.Tensor | None]]) -> float:
    some = [pair for pair in pairs if any(tensor is not None and tensor.numel() for tensor in pair)]
    return verification.find_worst(verification.measure_difference(found, true) for found, true in some)


def check_func_grad(built: BuiltTrial) -> Failure | None:
    """Check that torch.func.grad gives the gradients of the definition, within the budget of plain ones."""
    backend = _one_backend(built)
    slopes = torch.func.grad(lambda *tensors: _loss(_call(built, tensors)), argnums=(0, 1, 2))(*built.clean)
    mismatch = built.compare_slopes(slopes, backend, built.true)
    if mismatch is not None:
        built.refine()
        mismatch = built.compare_slopes(slopes, backend, built.true)
    nearby = None if mismatch is None else compute_nearby(built, built.run(backend))
    if nearby is not None:
        mismatch = built.compare_slopes(slopes, backend, nearby)
    if mismatch is None:
        return None
    name, error, allowed = mismatch
    return Failure("func-grad", backend, f"{name}: error {error:.2e}, allowed {allowed:.2e}")


def check_second(built: BuiltTrial) -> Failure | None:
    """Check that second derivatives are those of the definition."""

    def second(backend: BackendName, factor: float = 1.0, parts: Parts = built.parts) -> list[torch.Tensor | None]:
        inputs = [(tensor.detach() * factor).requires_grad_() for tensor in built.clean]
        output = verification.run_backend(parts, inputs, backend).output
        slopes = torch.autograd.grad(_loss(output), inputs, create_graph=True, allow_unused=True)
        total = sum(_loss(slope) for slope in slopes if slope is not None and slope.requires_grad)
        if not isinstance(total, torch.Tensor):
            return [None] * 3
        return list(torch.autograd.grad(total, inputs, allow_unused=True))

    try:
        true = second("eager")
    except NotImplementedError:
        return None
    error = _find_worst_slope(zip(second(_one_backend(built)), true, strict=True))
    if error <= SECOND:
        return None
    # What a rounding changes: of the inputs, much if a cosine divides by short vectors twice; of the scores, much if a
    # weight of a sparse normalizer is nearly 0.
    scores = [PerturbedScore(built.parts.score, 2 * torch.finfo(torch.float64).eps, seed) for seed in range(8)]
    moved = [second("eager", parts=built.parts._replace(score=score)) for score in scores]
    moved.append(second("eager", 1 + 2.0**-50))
    rounding = max(_find_worst_slope(zip(slopes, true, strict=True)) for slopes in moved)
    return None if error <= SECOND + 8 * rounding else Failure("second", _one_backend(built), f"error {error:.2e}")


def check_autocast(built: BuiltTrial) -> Failure | None:
    """Check that no backend errs more under autocast than the definition does."""
    true = built.true.attended.output
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = _call(built, built.clean)
        budget = 0.0
        for factor in CLONES:
            near = [(tensor * factor).detach() for tensor in built.clean]
            base = verification.run_backend(built.parts, near, "eager").output
            with torch.autocast("cpu", enabled=False):
                budget = max(budget, find_worst(base, compute_truth(built.parts, near, 0.0).attended.output))
    allowed = 2 * (budget + torch.finfo(torch.bfloat16).eps * float(true.abs().max() if true.numel() else 0.0))
    error = find_worst(found, true)
    return None if error <= allowed else Failure("autocast", _one_backend(built), f"error {error:.2e} > {allowed:.2e}")


def check_compile(built: BuiltTrial) -> Failure | None:
    """Check that a full graph computes the same."""
    torch._dynamo.reset()
    score, bias, mask, normalizer, aggregate = built.parts
    given = {"score": score, "bias": bias, "mask": mask, "normalizer": normalizer, "aggregate": aggregate}
    compiled = torch.compile(lambda *t: attend(*t, **given).output, fullgraph=True, backend="aot_eager")
    torch.default_generator.manual_seed(verification.SEED)
    output, true = compiled(*built.dirty), built.true.attended.output
    return _compare_outputs("compile", built, output, true, built.rows)


def check_fake(built: BuiltTrial) -> Failure | None:
    """Check that fake tensors give a fake tensor of the right shape and do not end the process."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        fakes = [mode.from_tensor(tensor.detach()) for tensor in built.clean]
        found = _call(built, fakes)
    same = found.shape == built.true.attended.output.shape
    return None if same else Failure("fake", _one_backend(built), f"shape {tuple(found.shape)}")


TRANSFORMS: dict[str, Check] = {
    "vmap": catch_errors(check_vmap),
    "func-grad": catch_errors(check_func_grad),
    "second": catch_errors(check_second),
    "autocast": catch_errors(check_autocast),
    "compile": catch_errors(check_compile),
    "fake": catch_errors(check_fake),
}
