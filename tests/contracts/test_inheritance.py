"""A part that overrides its parent's definition is computed by it: the parent's fast forms are not used."""

import dataclasses
from typing import Any

import pytest
import torch

from regard import Causal, Soft, Softmax, Window, attend
from regard.algebra import catalog
from regard.algebra.aggregates import Aggregate, AggregateResult
from regard.algebra.masks import Mask
from regard.algebra.normalizers import Normalizer
from regard.algebra.pairs import Pairs
from regard.algebra.parts import Parts
from regard.algebra.scores import Dot, DotForm, Gaussian
from regard.algebra.shapes import Tensor
from regard.compute import verification
from regard.compute.catalog_cases import CatalogCase
from regard.compute.verification import SMALL, build_parts, compare_backends
from regard.layers import Attention, Mechanism

pytestmark = pytest.mark.usefixtures("as_installed")
PLAIN = CatalogCase("scaled-dot", "none", "causal-window", "softmax", "soft")


def redefine(part: Any, name: str, change: Any) -> Any:
    """Return the same part of a subclass whose definition is changed."""
    parent = type(part)
    inherited = getattr(parent, name)
    own = type(f"Own{parent.__name__}", (parent,), {name: lambda self, *given: change(inherited(self, *given), *given)})
    if isinstance(part, torch.nn.Module):
        part.__class__ = own
        return part
    return own(*(getattr(part, field.name) for field in dataclasses.fields(part)))


def agree(case: CatalogCase, parts: Parts) -> None:
    errors = list(compare_backends(case, parts, SMALL))
    assert errors
    assert all(error.within_tolerance for error in errors), errors
    tensors = verification.draw_inputs(SMALL)
    found = verification.run_backend(parts, tensors, "auto")  # type: ignore[arg-type]
    true = verification.run_backend(parts, tensors, "eager")
    assert verification.measure_difference(found.output, true.output) <= verification.VALUE
    dense = found.weights.dense()
    assert verification.measure_difference(dense @ tensors[2], found.output) <= verification.VALUE


@pytest.mark.parametrize("name", catalog.SCORES)
def test_a_score_with_a_formula_of_its_own(name: str) -> None:
    case = PLAIN._replace(score=name)
    parts = build_parts(case, SMALL)
    agree(case, parts._replace(score=redefine(parts.score, "forward", lambda scores, *_: 0.1 * scores.square())))


def test_a_multiple_with_a_transformation_of_its_own() -> None:
    parts = build_parts(PLAIN, SMALL)
    agree(PLAIN, parts._replace(score=redefine(2.0 * parts.score, "transform", lambda scores, *_: scores.square())))


@pytest.mark.parametrize("name", [name for name in catalog.NORMALIZERS if name != "hard-monotonic"])
def test_a_normalizer_with_a_formula_of_its_own(name: str) -> None:
    case = PLAIN._replace(normalizer=name)
    parts = build_parts(case, SMALL)

    def fade(weights: Tensor, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        return weights / (1.0 + pairs.column % 3)

    normalizer = redefine(parts.normalizer, "forward", fade)
    assert not normalizer.shift_invariant
    if case.normalizer in ("monotonic", "chunkwise"):
        assert normalizer.form == "sequential"
    else:
        agree(case, parts._replace(normalizer=normalizer))


@pytest.mark.parametrize("name", [name for name in catalog.BIASES if name != "none"])
def test_a_bias_with_a_formula_of_its_own(name: str) -> None:
    case = PLAIN._replace(bias=name, mask="causal")
    parts = build_parts(case, SMALL)
    bias = redefine(parts.bias, "forward", lambda table, pairs: table + 0.1 * (pairs.row % 3) * (pairs.column % 2))
    agree(case, parts._replace(bias=bias))


@pytest.mark.parametrize("name", catalog.MASKS)
def test_a_mask_with_a_rule_of_its_own(name: str) -> None:
    case = PLAIN._replace(mask=name)
    parts = build_parts(case, SMALL)
    agree(
        case, parts._replace(mask=redefine(parts.mask, "allows", lambda _, pairs: (pairs.row + pairs.column) % 2 == 0))
    )


@pytest.mark.parametrize("name", ["soft", "argmax"])
def test_an_aggregate_with_a_rule_of_its_own(name: str) -> None:
    case = PLAIN._replace(aggregate=name)
    parts = build_parts(case, SMALL)

    def thin(choice: AggregateResult, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(choice.weights * (pairs.column % 2))

    agree(case, parts._replace(aggregate=redefine(parts.aggregate, "forward", thin)))


def test_a_subclass_may_claim_a_fast_form_of_its_own() -> None:
    class Double(Gaussian):
        def forward(self, query: Tensor, key: Tensor) -> Tensor:
            return 2.0 * super().forward(query, key)

        def dot_form(self, query: Tensor, key: Tensor) -> DotForm:
            return super().dot_form(query, key).multiply(2.0)

    assert Double().form == "dot"
    case = PLAIN._replace(score="gaussian", normalizer="sparsemax")
    agree(case, build_parts(case, SMALL)._replace(score=Double()))
    agree(PLAIN, build_parts(PLAIN, SMALL)._replace(score=Double()))


def test_a_subclass_that_changes_nothing_keeps_the_fast_form() -> None:
    class OwnDot(Dot):
        """The same."""

    class OwnCausal(Causal):
        """The same."""

    assert OwnDot().form == "dot"
    assert OwnCausal().causal


class Ranks(Normalizer):
    """Weights by the place of a key among all keys of the row, allowed or not: it must see whole rows."""

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        assert pairs.columns == (0, pairs.keys)
        assert scores.shape[-1] == pairs.keys
        weights = torch.softmax(scores.cumsum(-1) / pairs.keys, -1)
        return weights if allowed is None else weights.masked_fill(~allowed, 0.0)


class HalfAggregate(Aggregate):
    """Half of the weight, and none at the first key."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        assert pairs.columns == (0, pairs.keys)
        return AggregateResult(0.5 * weights * (pairs.column > 0))


@pytest.mark.parametrize("backend", ["auto", "stream", "rows"])
@pytest.mark.parametrize("mask", [Window(50, 3), Causal(), Window(9, 0) & Causal()], ids=["window", "causal", "both"])
def test_a_part_of_ones_own_sees_whole_rows(mask: Mask, backend: Any) -> None:
    """Under a window a block of queries needs few keys; parts that do not say so are given all of them."""
    query, key, value = (torch.randn(1500, 3, dtype=torch.float64) for _ in range(3))
    for options in ({"normalizer": Ranks()}, {"aggregate": HalfAggregate()}):
        found = attend(query, key, value, mask=mask, backend=backend, **options)  # type: ignore[arg-type]
        true = attend(query, key, value, mask=mask, backend="eager", **options)  # type: ignore[arg-type]
        torch.testing.assert_close(found.output, true.output, rtol=0, atol=1e-10)
        torch.testing.assert_close(found.weights.tile(slice(700, 710), slice(None)), true.weights.dense()[700:710])


class WithoutHead(Aggregate):
    """Every head but one: it counts the heads on the third axis from the end."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        keep = torch.arange(weights.shape[-3]) != 1
        return AggregateResult(weights * keep[:, None, None])


class CoolerSoftmax(Softmax):
    """Colder from head to head."""

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        return super().forward(scores * torch.arange(1.0, 1 + scores.shape[-3])[:, None, None], allowed, pairs)


@pytest.mark.parametrize(
    "parts", [{"aggregate": WithoutHead()}, {"normalizer": CoolerSoftmax()}], ids=["aggregate", "norm"]
)
def test_a_part_that_knows_heads_sees_heads_and_not_groups(parts: Any) -> None:
    torch.manual_seed(0)
    grouped = Attention(12, heads=6, groups=2, mechanism=Mechanism(**parts))
    x = torch.randn(2, 5, 12)
    memory = grouped.remember(x)
    seen = grouped.attend(x, memory).weights.dense()
    query = grouped.projections.project_queries(x)
    key, value = (tensor.repeat_interleave(3, dim=-3) for tensor in (memory.key, memory.value))
    true = attend(query, key, value, backend="eager", **parts).weights.dense()
    torch.testing.assert_close(seen, true)


def test_parts_of_the_catalog_still_share_the_keys_of_a_group() -> None:
    assert Mechanism(Dot() + 0.5 * Gaussian(), aggregate=Soft()).uniform
