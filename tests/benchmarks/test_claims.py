"""Every claim is well formed, and whoever is installed computes the same numbers."""

from pathlib import Path

import pytest
import torch

from benchmarks import claims
from benchmarks.claim import FASTEST, OURS, MemoryCase, TimeCase
from benchmarks.claims import NAMES, find
from benchmarks.measurement import Scale, _compute_differences, build_call, time_case
from regard.compute.backends import BACKENDS

CASES = [(name, index) for name in NAMES for index in range(len(find(name).cases))]


def test_every_file_is_a_claim() -> None:
    files = {path.stem for path in Path(claims.__path__[0]).glob("*.py")} - {"__init__"}
    assert files == set(NAMES)


@pytest.mark.parametrize(("name", "index"), CASES)
def test_bounds_name_contenders_that_exist(name: str, index: int) -> None:
    case = find(name).cases[index]
    for bound in case.bounds:
        assert bound.against in case.list_builds() or (bound.against == FASTEST and case.peers)
        assert (bound.least is None) != (bound.most is None)
    if isinstance(case, MemoryCase):
        assert set(case.limited) <= set(case.peers)


@pytest.mark.parametrize(("name", "index"), CASES)
def test_peers_compute_what_we_compute(name: str, index: int) -> None:
    case = find(name).cases[index]
    runs = {}
    for contender, build in case.list_builds().items():
        try:
            runs[contender] = build_call(build(case.tiny), backward=case.backward)
        except ImportError:  # a peer that only its own environment has
            continue
    peers = [peer for peer in case.peers if peer in runs]
    _compute_differences(runs, peers)
    for run in runs.values():
        run()


def test_a_peer_that_computes_something_else_is_found_out() -> None:
    runs = {OURS: lambda: torch.ones(3), "peer": lambda: torch.tensor([1.0, 1.0, 1.1])}
    with pytest.raises(ArithmeticError, match=r"^peer computes something else than regard: 1.0e-01 apart$"):
        _compute_differences(runs, ["peer"])


def test_a_missing_peer_is_said_and_the_others_run() -> None:
    case = find("gaussian_cdist").cases[0]
    assert isinstance(case, TimeCase)

    def raise_import_error(sizes: object) -> None:
        raise ImportError("No module named 'absent'")

    partial = TimeCase(
        case.name, case.problem, case.tiny, case.ours, {**case.peers, "absent": raise_import_error}, case.bounds
    )  # type: ignore[dict-item]
    found = time_case(partial, Scale(tiny=True))
    assert found.missing == {"absent": "No module named 'absent'"}
    assert [entry.name for entry in found.entries] == [OURS, "torch.cdist"]
    assert len(found.checks) == 1


LONG = [
    backend for backend in BACKENDS if backend != "few_queries"
]  # which is for a handful of queries, and cannot grow


def test_growth_covers_every_backend() -> None:
    growth = find("growth").growth
    assert growth is not None
    assert set(growth.curves) == set(LONG)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("backend", LONG)
def test_every_curve_runs(backend: str) -> None:
    growth = find("growth").growth
    assert growth is not None
    curve = growth.curves[backend]
    assert build_call(curve.build(16), backward=curve.backward)().shape == (1, 1, 16, 64)
