"""The oracle itself: it sees NaN, shapes and every pair of names."""

import itertools

import pytest
import torch

from regard import DotForm, DotScore
from regard.algebra import catalog
from regard.algebra.shapes import Tensor
from regard.compute import catalog_cases, verification
from regard.compute.catalog_cases import CatalogCase, choose_pairwise_cases
from regard.compute.kernels import native
from regard.compute.verification import SMALL, Deviation, build_parts, compare_backends, find_worst, measure_difference

pytestmark = pytest.mark.usefixtures("as_installed")
CASE = CatalogCase("dot", "none", "full", "softmax", "soft")


def test_the_worst_is_nan_wherever_it_stands() -> None:
    """max() passes over a NaN that does not come first: gradients of NaN were once called right."""
    nan = float("nan")
    for order in itertools.permutations([0.0, nan, 1.0]):
        assert find_worst(order) != find_worst(order)
    assert find_worst([0.5, 2.0, 1.0]) == 2.0
    assert find_worst([]) == 0.0


@pytest.mark.parametrize(("value", "gradient", "right"), [(1e-11, 1e-9, True), (1e-9, 0.0, False), (0.0, 1e-7, False)])
def test_an_error_is_right_if_both_are_small(value: float, gradient: float, right: bool) -> None:
    assert Deviation(CASE, "sdpa", value, gradient).within_tolerance == right
    assert not Deviation(CASE, "sdpa", float("nan"), 0.0).within_tolerance
    assert not Deviation(CASE, "sdpa", 0.0, float("nan")).within_tolerance


def test_a_difference_is_relative_and_sees_shapes() -> None:
    assert measure_difference(torch.tensor([1000.0]), torch.tensor([1001.0])) == pytest.approx(1 / 1001)
    assert measure_difference(torch.tensor([0.0]), torch.tensor([0.5])) == 0.5  # small numbers count as they are
    assert measure_difference(None, torch.tensor([2.0])) == 1.0
    assert measure_difference(None, None) == 0.0
    assert measure_difference(torch.zeros(2, 1), torch.zeros(2)) == float("inf")
    assert measure_difference(torch.tensor([float("nan")]), torch.tensor([1.0])) != 0.0


class NaNGradient(DotScore):
    """Right in value; NaN in the gradient to the keys, which is not the first that is compared."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-1, -2)

    def dot_form(self, query: Tensor, key: Tensor) -> DotForm:
        return DotForm(query, key + 0 * (key - key).abs().sqrt())


def test_a_gradient_of_nan_is_found() -> None:
    errors = list(verification.verify_part(NaNGradient(), name="mine"))
    assert any(not error.within_tolerance for error in errors)


def test_every_two_names_meet() -> None:
    cases = choose_pairwise_cases()
    families = [list(catalog.FAMILIES[family]) for family in catalog_cases.FAMILIES]
    for i, j in itertools.combinations(range(len(families)), 2):
        met = {(case[i], case[j]) for case in cases}
        assert met == set(itertools.product(families[i], families[j]))
    assert len(cases) < 1.5 * len(families[0]) * len(families[2])


def test_the_product_is_everything() -> None:
    count = sum(1 for _ in catalog_cases.iterate_cases())
    expected = 1
    for family in catalog_cases.FAMILIES:
        expected *= len(catalog.FAMILIES[family])
    assert count == expected


def test_each_path_is_compared_once() -> None:
    """`rows` is `stream` under another name; `few_queries` is there where there is a compiler."""
    compiled = native.load_library() is not None
    found = [error.backend for error in compare_backends(CASE, build_parts(CASE, SMALL), SMALL)]
    assert found == ["local", "sdpa", "stream"] + ["few_queries"] * compiled


def test_the_weights_of_the_kernel_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """From its totals, not by the definition once more."""
    monkeypatch.setattr(
        "regard.compute.weights._compute_log_weights", lambda *args: torch.zeros(2, 3, 7, 11, dtype=torch.float64)
    )
    errors = {
        error.backend: error.within_tolerance for error in compare_backends(CASE, build_parts(CASE, SMALL), SMALL)
    }
    assert not errors["sdpa"]
    assert errors["stream"]
