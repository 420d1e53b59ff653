"""Measure a claim's cases in this process: agreement first, then time in turns, or memory in fresh processes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.claim import FASTEST, OURS, Bound, Contender, MemoryCase, TimeCase
from benchmarks.results import CaseResult, Check, Entry
from regard.compute.timing import Budget, interleave, summarize, summarize_ratios

FULL = Budget(seconds=15.0, least=7, most=100, sample=0.05)
QUICK = Budget(seconds=1.0, least=3, most=20, sample=0.01)
TOLERANCE = 1e-4  # of float32 results, relative to the largest: more is another function, not another rounding


class Scale(NamedTuple):
    """How long to measure, and whether at sizes that only show that it runs."""

    quick: bool = False
    tiny: bool = False

    @property
    def budget(self) -> Budget:
        """The budget of one case."""
        return QUICK if self.quick or self.tiny else FULL


def build_call(contender: Contender, *, backward: bool) -> Callable[[], Tensor]:
    """Return one call: the forward pass without a graph, or with its gradients for fixed upstream numbers."""
    if not backward:

        def forward() -> Tensor:
            with torch.no_grad():
                return contender.forward()

        return forward

    upstream: list[Tensor] = []

    def both() -> Tensor:
        output = contender.forward()
        if not upstream:
            upstream.append(torch.randn(output.shape, generator=torch.Generator().manual_seed(0)))
        torch.autograd.grad(output, contender.leaves, upstream[0])
        return output.detach()

    return both


def time_case(case: TimeCase[Any], scale: Scale) -> CaseResult:
    """Time every contender that is installed."""
    runs, missing = _build_runs(case, case.tiny if scale.tiny else case.problem)
    differences = _compute_differences(runs, [peer for peer in case.peers if peer in runs])
    samples = interleave(runs, scale.budget)
    entries = [Entry(name, *summarize(found), differences.get(name)) for name, found in samples.items()]
    checks = [_check_bound(bound, samples, tuple(case.peers)) for bound in case.bounds]
    return CaseResult(case.name, "s", entries, [check for check in checks if check is not None], missing, case.limit)


def _build_runs(case: TimeCase[Any], problem: Any) -> tuple[dict[str, Callable[[], Tensor]], dict[str, str]]:
    runs, missing = {}, {}
    for name, build in case.list_builds().items():
        try:
            runs[name] = build_call(build(problem), backward=case.backward)
        except ImportError as error:
            missing[name] = str(error)
    return runs, missing


def _compute_differences(runs: Mapping[str, Callable[[], Tensor]], peers: Sequence[str]) -> dict[str, float]:
    """Return how far each peer is from ours."""
    ours = runs[OURS]()
    largest = ours.abs().amax().item()
    found = {}
    for name in peers:
        found[name] = (runs[name]() - ours).abs().amax().item() / largest
        if not found[name] <= TOLERANCE:
            raise ArithmeticError(f"{name} computes something else than {OURS}: {found[name]:.1e} apart")
    return found


def _check_bound(bound: Bound, samples: Mapping[str, Sequence[float]], peers: Sequence[str]) -> Check | None:
    """Return the bound as found, or None if the peer that it names is missing."""
    against = bound.against
    if against == FASTEST:
        present = [peer for peer in peers if peer in samples]
        against = min(present, key=lambda peer: summarize(samples[peer]).median, default="")
    if against not in samples:
        return None
    if bound.least is not None:
        value = summarize_ratios(samples[against], samples[OURS])
        return Check(f"faster than {against}", *value[:3], "least", bound.least)
    if bound.most is None:
        raise ValueError(f"the bound against {bound.against} bounds nothing")
    value = summarize_ratios(samples[OURS], samples[against])
    return Check(f"the time of {against}", *value[:3], "most", bound.most)


def measure_memory_case(claim: str, index: int, case: MemoryCase[Any], scale: Scale) -> CaseResult:
    """Weigh every contender, each time in a fresh process."""
    # Imported here: that process imports this module.
    from benchmarks.memory import MemoryRequest, measure_memory

    entries = []
    for name in case.list_builds():
        wanted = MemoryRequest(claim, index, name, tiny=scale.tiny, limit=case.limited.get(name, 0))
        found = [measure_memory(wanted) for _ in range(1 if scale.quick or scale.tiny or wanted.limit else 3)]
        over = any(weight.over for weight in found)
        entries.append(Entry(name, *summarize([weight.megabytes for weight in found]), over=over))
    return CaseResult(case.name, "MB", entries, _check_memory(case, entries), limit=case.limit)


def _check_memory(case: MemoryCase[Any], entries: Sequence[Entry]) -> list[Check]:
    ours = entries[0]
    found = {entry.name: entry for entry in entries}
    checks = []
    if case.most is not None:
        checks.append(Check("megabytes", ours.median, ours.low, ours.high, "most", case.most, "MB"))
    for bound in case.bounds:
        if bound.most is not None:
            theirs = found[bound.against].median
            median, low, high = ours.median / theirs, ours.low / theirs, ours.high / theirs
            checks.append(Check(f"the memory of {bound.against}", median, low, high, "most", bound.most))
    return checks
