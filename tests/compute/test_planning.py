"""Lowering is a pure function that says why, and a backend asked for by name computes it or raises."""

import gc
import re
from typing import Any

import pytest
import torch

from regard import (
    Additive,
    ALiBi,
    Argmax,
    Bilinear,
    CallFacts,
    Capped,
    Causal,
    Concat,
    Cosine,
    Dense,
    Documents,
    Dot,
    Entmax,
    FeatureDot,
    Full,
    Gaussian,
    Gumbel,
    Laplacian,
    Lengths,
    LocalGaussian,
    Location,
    Mask,
    Monotonic,
    Normalizer,
    Parts,
    Plan,
    PlanError,
    Prefix,
    Prior,
    Relative,
    RowTotal,
    Sample,
    ScaledDot,
    Score,
    Sigmoid,
    Soft,
    Softmax,
    SoftmaxPlusOne,
    Sparsemax,
    Window,
    attend,
    make_plan,
)
from regard.algebra import catalog
from regard.algebra.shapes import Tensor
from regard.compute import attend as operator
from regard.compute import planning
from regard.compute.backends import BACKENDS
from regard.compute.backends.local import LARGE_TABLE
from regard.compute.catalog_cases import CatalogCase, choose_pairwise_cases
from regard.compute.planning import BackendName
from regard.compute.verification import SMALL, build_parts

FACTS = CallFacts((2, 3), 9, 7, 11, 13)


def parts(**changes: Any) -> Parts:
    plain = {"score": ScaledDot(), "bias": None, "mask": Full(), "normalizer": Softmax(), "aggregate": Soft()}
    return Parts(**(plain | changes))


def test_the_same_parts_and_facts_give_the_same_plan() -> None:
    for case in choose_pairwise_cases():
        first, second = (
            build_parts(case, SMALL, seed=1),
            build_parts(case, SMALL, seed=2),
        )  # other numbers in every tensor
        for facts in (FACTS, FACTS._replace(dropout=True, grad=True), FACTS._replace(dtype=torch.float16)):
            assert make_plan(first, facts) == make_plan(second, facts), case


def test_a_plan_is_words_and_holds_no_tensor() -> None:
    for case in choose_pairwise_cases()[::7]:
        plan = make_plan(build_parts(case, SMALL), FACTS)
        seen: list[object] = [plan]
        for thing in seen:
            assert not isinstance(thing, Tensor)
            seen.extend(gc.get_referents(thing) if isinstance(thing, tuple) else [])
        assert all(isinstance(word, str) for step in plan.steps for word in step)
        assert hash(plan) == hash(make_plan(build_parts(case, SMALL), FACTS))


def test_facts_and_keys_hold_no_tensor() -> None:
    for case in choose_pairwise_cases()[::7]:
        made = build_parts(case, SMALL)
        hash((made.plan_key, FACTS))
        seen: list[object] = [made.plan_key]
        for thing in seen:
            assert not isinstance(thing, Tensor)
            seen.extend(thing if isinstance(thing, tuple) else [])


# Every row of the lowering table of the design, on the CPU.
TABLE: dict[str, tuple[Parts, CallFacts, BackendName]] = {
    "dot": (parts(score=Dot()), FACTS, "sdpa"),
    "scaled dot": (parts(), FACTS, "sdpa"),
    "bilinear": (parts(score=Bilinear(11, 11)), FACTS, "sdpa"),
    "low rank": (parts(score=Bilinear(11, 11, rank=2)), FACTS, "sdpa"),
    "cosine": (parts(score=Cosine()), FACTS, "sdpa"),
    "gaussian": (parts(score=Gaussian()), FACTS, "sdpa"),
    "learned gaussian": (parts(score=Gaussian.learned(heads=3)), FACTS._replace(grad=True), "sdpa"),
    "location": (parts(score=Location(11, keys=7)), FACTS, "sdpa"),
    "a sum of dot forms": (parts(score=Dot() + 0.5 * Gaussian(2.0)), FACTS, "sdpa"),
    "alibi, causal": (parts(bias=ALiBi(3), mask=Causal()), FACTS._replace(grad=True), "sdpa"),
    "alibi, both ways": (parts(bias=ALiBi(3)), FACTS, "sdpa"),
    "prior": (parts(bias=Prior(torch.zeros(7))), FACTS, "sdpa"),
    "learned prior": (parts(bias=Prior(torch.nn.Parameter(torch.zeros(7)))), FACTS._replace(grad=True), "sdpa"),
    "relative": (parts(bias=Relative(3)), FACTS, "sdpa"),
    "relative that learns": (parts(bias=Relative(3)), FACTS._replace(grad=True), "stream"),
    "dense that learns": (
        parts(bias=Dense(torch.zeros(5, 7, requires_grad=True))),
        FACTS._replace(grad=True),
        "stream",
    ),
    "a temperature that learns beside a dense bias": (
        parts(bias=Dense(torch.zeros(5, 7)), normalizer=Softmax.learned()),
        FACTS._replace(grad=True),
        "stream",
    ),
    "additive": (parts(score=Additive(11)), FACTS, "stream"),
    "concat": (parts(score=Concat(11)), FACTS, "stream"),
    "laplacian": (parts(score=Laplacian()), FACTS, "stream"),
    "capped": (parts(score=Capped(Dot())), FACTS, "stream"),
    "temperature": (parts(normalizer=Softmax.learned(heads=3)), FACTS._replace(grad=True), "sdpa"),
    "softmax plus one": (parts(normalizer=SoftmaxPlusOne()), FACTS._replace(grad=True), "sdpa"),
    "local-p": (parts(normalizer=LocalGaussian(torch.zeros(5), 1.0)), FACTS._replace(grad=True), "sdpa"),
    "local-p in half precision": (
        parts(normalizer=LocalGaussian(torch.zeros(5), 1.0)),
        FACTS._replace(dtype=torch.bfloat16),
        "stream",
    ),
    "local-p traced": (parts(normalizer=LocalGaussian(torch.zeros(5), 1.0)), FACTS._replace(traced=True), "stream"),
    "window": (parts(mask=Window(before=63, after=64)), FACTS._replace(queries=512, keys=512), "local"),
    "window of a short text": (parts(mask=Window(before=2, after=2)), FACTS._replace(queries=511, keys=511), "sdpa"),
    "wide window": (parts(mask=Window(before=64, after=64)), FACTS._replace(queries=512, keys=512), "sdpa"),
    "features over their total": (
        parts(score=FeatureDot(), normalizer=RowTotal()),
        FACTS._replace(grad=True),
        "linear",
    ),
    "causal features": (parts(score=FeatureDot(), normalizer=RowTotal(), mask=Causal()), FACTS, "linear"),
    "causal features with padding": (
        parts(score=FeatureDot(), normalizer=RowTotal(), mask=Causal() & Lengths(torch.tensor(3))),
        FACTS,
        "linear",
    ),
    "features in a window": (
        parts(score=FeatureDot(), normalizer=RowTotal(), mask=Window(before=1, after=1)),
        FACTS,
        "stream",
    ),
    "sigmoid": (parts(normalizer=Sigmoid()), FACTS, "stream"),
    "sparsemax": (parts(normalizer=Sparsemax()), FACTS, "rows"),
    "entmax": (parts(normalizer=Entmax.learned(heads=3)), FACTS._replace(grad=True), "rows"),
    "sparsemax of additive": (parts(score=Additive(11), normalizer=Sparsemax()), FACTS, "rows"),
    "argmax": (parts(aggregate=Argmax()), FACTS, "rows"),
    "sampled": (parts(aggregate=Sample()), FACTS._replace(grad=True), "rows"),
    "gumbel": (parts(aggregate=Gumbel()), FACTS, "rows"),
    "monotonic": (parts(normalizer=Monotonic()), FACTS, "eager"),
    "full": (parts(), FACTS, "sdpa"),
    "causal": (parts(mask=Causal()), FACTS, "sdpa"),
    "causal, square": (parts(mask=Causal()), FACTS._replace(queries=2**13, keys=2**13), "sdpa"),
    "causal, one query": (parts(mask=Causal()), FACTS._replace(queries=1, keys=2**25), "sdpa"),
    "lengths": (parts(mask=Lengths(torch.tensor(3))), FACTS, "sdpa"),
    "prefix": (parts(mask=Prefix(torch.tensor(3))), FACTS, "sdpa"),
    "documents": (parts(mask=Documents(torch.zeros(7, dtype=torch.long))), FACTS, "sdpa"),
    "table": (parts(mask=Mask.keep(torch.ones(5, 7, dtype=torch.bool))), FACTS, "sdpa"),
    "grouped heads": (parts(), FACTS._replace(lead=(2, 3, 4)), "sdpa"),
    "dropout": (parts(), FACTS._replace(dropout=True), "stream"),
    "dropout of features": (parts(score=FeatureDot(), normalizer=RowTotal()), FACTS._replace(dropout=True), "stream"),
}
SQUARE = FACTS._replace(queries=2**12, keys=2**12)
LARGE: dict[str, tuple[Parts, CallFacts, BackendName]] = {
    "a table of 2²⁴ pairs": (parts(mask=Prefix(torch.tensor(3))), SQUARE, "sdpa"),
    "one more row": (parts(mask=Prefix(torch.tensor(3))), SQUARE._replace(queries=2**12 + 1), "local"),
    "causal, not square": (parts(mask=Causal()), SQUARE._replace(queries=2**12 + 1), "local"),
    "lengths need no table": (parts(mask=Lengths(torch.tensor(3))), SQUARE._replace(queries=2**20), "sdpa"),
    "no mask needs no table": (parts(), SQUARE._replace(queries=2**20), "sdpa"),
    "a dense bias": (parts(bias=Relative(3)), SQUARE._replace(queries=2**13), "local"),
    "a column is no table": (parts(bias=Prior(torch.zeros(7))), SQUARE._replace(queries=2**13), "sdpa"),
    "local-p has a Gaussian for each pair": (
        parts(normalizer=LocalGaussian(torch.zeros(2**13), 1.0)),
        SQUARE._replace(queries=2**13),
        "local",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_each_row_of_the_lowering_table_lands_where_it_says(name: str) -> None:
    made, facts, backend = TABLE[name]
    assert make_plan(made, facts).backend == backend


@pytest.mark.parametrize("name", LARGE)
def test_what_would_not_be_linear_in_the_length_goes_by_blocks(name: str) -> None:
    made, facts, backend = LARGE[name]
    assert SQUARE.queries * SQUARE.keys == LARGE_TABLE
    assert make_plan(made, facts).backend == backend


def test_every_part_of_the_catalog_is_lowered_with_a_reason() -> None:
    for case in choose_pairwise_cases():
        plan = make_plan(build_parts(case, SMALL), FACTS)
        assert plan.backend in BACKENDS
        assert plan.because
        pieces = [step.piece for step in plan.steps]
        assert pieces[0] == "score"
        assert ("bias" in pieces) == (case.bias != "none")
        assert ("aggregate" in pieces) == (case.aggregate != "soft")
        assert all(step.becomes and step.because for step in plan.steps)


NAMED = 'fix: use backend="auto", which finds one that can'
REFUSED: list[tuple[BackendName, Parts, CallFacts, str]] = [
    ("sdpa", parts(score=Additive(11)), FACTS, "the score has no dot form"),
    ("local", parts(score=Laplacian()), FACTS, "the score has no dot form"),
    ("sdpa", parts(normalizer=Sigmoid()), FACTS, "the normalizer is not a softmax"),
    ("sdpa", parts(normalizer=Monotonic()), FACTS, "the normalizer is not a softmax"),
    ("sdpa", parts(bias=Relative(3)), FACTS._replace(grad=True), "a fused kernel gives no gradient to a dense bias"),
    ("sdpa", parts(aggregate=Argmax()), FACTS, "a hard aggregate needs the weights themselves"),
    ("local", parts(), FACTS._replace(dropout=True), "dropout on weights needs the weights themselves"),
    (
        "sdpa",
        parts(normalizer=LocalGaussian(torch.zeros(5), 1.0)),
        FACTS._replace(dtype=torch.float16),
        "half precision would lose the digits of the Gaussian",
    ),
    (
        "sdpa",
        parts(normalizer=LocalGaussian(torch.zeros(5), 1.0)),
        FACTS._replace(device="cuda"),
        "the row totals of this device's kernel have no gradient",
    ),
    ("linear", parts(), FACTS, "only the row total can be reassociated"),
    ("linear", parts(score=Laplacian(), normalizer=RowTotal()), FACTS, "the score has no dot form"),
    (
        "linear",
        parts(score=FeatureDot(), normalizer=RowTotal(), bias=Prior(torch.zeros(7))),
        FACTS,
        "a bias would have to be a feature",
    ),
    (
        "linear",
        parts(score=FeatureDot(), normalizer=RowTotal(), mask=Prefix(torch.tensor(3))),
        FACTS,
        "the mask is neither causal nor the same for all queries",
    ),
    (
        "linear",
        parts(score=FeatureDot(), normalizer=RowTotal(), aggregate=Sample()),
        FACTS,
        "a hard aggregate needs the weights themselves",
    ),
    ("stream", parts(normalizer=Monotonic()), FACTS, "each row of the weights depends on the row before"),
    ("rows", parts(normalizer=Monotonic()), FACTS, "each row of the weights depends on the row before"),
    ("flex", parts(score=Laplacian()), FACTS, "the score has no dot form"),
    ("flex", parts(normalizer=SoftmaxPlusOne()), FACTS, "flex is used for plain softmax without a bias"),
    ("flex", parts(bias=ALiBi(3), mask=Causal()), FACTS, "flex is used for plain softmax without a bias"),
    ("flex", parts(), FACTS._replace(grad=True), "FlexAttention has no backward on the CPU"),
    ("flex", parts(mask=Lengths(torch.tensor(3))), FACTS, "flex is used for full, causal and window masks"),
    (
        "flex",
        parts(mask=Window(before=1, after=1) & Lengths(torch.tensor([[3], [5]]))),
        FACTS,
        "flex is used for full, causal and window masks",
    ),
    ("flex", parts(), FACTS._replace(lead=(2,)), "flex wants (batch, heads) in front"),
]


@pytest.mark.parametrize(("backend", "made", "facts", "reason"), REFUSED)
def test_a_backend_that_cannot_says_why(backend: BackendName, made: Parts, facts: CallFacts, reason: str) -> None:
    sentence = f"backend: got '{backend}', expected one that can compute this: {reason}; {NAMED}"
    with pytest.raises(PlanError, match=f"^{re.escape(sentence)}$"):
        make_plan(made, facts, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_asked_for_by_name_runs_or_raises_and_never_another(
    backend: BackendName, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    for name in BACKENDS:
        run = BACKENDS[name].run
        monkeypatch.setattr(BACKENDS[name], "run", lambda call, name=name, run=run: ran.append(name) or run(call))
    sizes = SMALL._replace(lead=(2, 3))
    for case in (
        CatalogCase("dot", "none", "full", "softmax", "soft"),
        CatalogCase("additive", "none", "causal", "softmax", "soft"),
        CatalogCase("features", "none", "causal", "row-total", "soft"),
        CatalogCase("dot", "relative", "lengths", "sparsemax", "argmax"),
        CatalogCase("dot", "none", "full", "monotonic", "soft"),
    ):
        score, bias, mask, normalizer, aggregate = build_parts(case, sizes, dtype=torch.float32)
        query, key, value = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 11, 5), torch.randn(2, 3, 11, 3)
        options: dict[str, Any] = {"score": score, "bias": bias, "mask": mask, "normalizer": normalizer}
        ran.clear()
        try:
            plan = attend(query, key, value, aggregate=aggregate, backend=backend, **options).plan
        except PlanError:
            assert ran == []
        else:
            assert ran == [backend]
            assert plan.backend == backend
            assert plan.because == "it was asked for"


def test_two_types_with_one_name_have_two_plans() -> None:
    """A user's own Softmax was once computed as ours, from the cache, without a word."""

    class Softmax(Normalizer):
        form = "rows"

        def forward(self, scores: Tensor, allowed: Tensor | None, pairs: object) -> Tensor:
            return torch.sigmoid(scores)

    class Dot(Score):
        def forward(self, query: Tensor, key: Tensor) -> Tensor:
            return -torch.cdist(query, key)

    query, key, value = torch.randn(5, 11), torch.randn(7, 11), torch.randn(7, 13)
    assert attend(query, key, value).plan.backend == "sdpa"
    found = attend(query, key, value, normalizer=Softmax())
    assert found.plan.backend == "rows"
    assert torch.allclose(found.output, torch.sigmoid(query @ key.T / 11**0.5) @ value, atol=1e-5)
    assert attend(query, key, value, score=Dot()).plan.backend == "stream"


def test_plans_are_remembered_and_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_plans", {})
    monkeypatch.setattr(planning, "MOST_PLANS", 5)
    monkeypatch.setattr(operator, "_checked_plans", {})
    monkeypatch.setattr(operator, "MOST_PLANS", 5)
    made: list[Plan] = []

    def count_plan(*args: Any, **kwargs: Any) -> Plan:
        made.append(make_plan(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(planning, "make_plan", count_plan)
    query = torch.randn(3, 2)
    for _ in range(3):
        attend(query, query, query)
    assert len(made) == 1
    for length in range(1, 30):
        attend(query, torch.randn(length, 2), torch.randn(length, 2))
        assert max(len(planning._plans), len(operator._checked_plans)) <= 5
    assert len(made) == 29  # three keys were known
    with torch.no_grad():
        attend(query, query, query)
    assert len(made) == 30  # whether a gradient is wanted is a fact


def test_the_cache_tells_apart_whatever_the_plan_depends_on() -> None:
    """Each pair of these calls would otherwise share a plan that is wrong for the second."""
    query, key, value = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11), torch.randn(2, 3, 7, 11)
    frozen, learned = Relative(3).requires_grad_(False), Relative(3)
    calls: list[tuple[dict[str, Any], BackendName]] = [
        ({"bias": frozen}, "sdpa"),
        ({"bias": learned}, "stream"),
        ({"bias": ALiBi(3), "mask": Causal()}, "sdpa"),
        ({"score": Dot() + Gaussian()}, "sdpa"),
        ({"score": Dot() + Laplacian()}, "stream"),
        ({"score": 2.0 * Dot()}, "sdpa"),
        ({"score": 2.0 * Laplacian()}, "stream"),
        ({"dropout": 0.1}, "stream"),
        ({}, "sdpa"),
        ({"bias": Dense(torch.zeros(5, 7))}, "sdpa"),
        ({"bias": Dense(torch.zeros(5, 7, requires_grad=True))}, "stream"),
        ({"bias": Dense(torch.zeros(5, 7)), "normalizer": Softmax.learned()}, "stream"),
    ]
    for _ in range(2):
        for options, backend in calls:
            assert attend(query, key, value, **options).plan.backend == backend, options


def test_a_catalog_name_that_is_misspelt_is_answered_with_the_nearest() -> None:
    known = ", ".join(catalog.SCORES)
    sentence = f"score: got 'gausian', expected one of {known}; fix: write gaussian"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        catalog.find("score", "gausian")
