"""The four ways to learn where to look, on scenes, against the expectation over every way of looking."""

import pytest
import torch

from regard.errors import InputError
from regard.models.decoders.region_attention import AGGREGATES
from regard.tasks.captioning.expectation import compute_expected_log_likelihood, use_aggregate
from regard.tasks.captioning.gradient_agreement import (
    GradientCase,
    build_case,
    compute_exact_objective,
    estimate_objective,
    flatten_tensors,
    measure_gradient_agreement,
)


@pytest.fixture(scope="module")
def scenes() -> GradientCase:
    return build_case(3)


def test_reinforce_is_unbiased_on_scenes(scenes: GradientCase) -> None:
    wanted = flatten_tensors(torch.autograd.grad(compute_exact_objective(scenes), scenes.attention_parameters))
    torch.manual_seed(5)
    several = torch.stack(
        [
            flatten_tensors(torch.autograd.grad(estimate_objective(scenes, 1500), scenes.attention_parameters))
            for _ in range(6)
        ]
    )
    error = several.std(0).norm() / len(several) ** 0.5
    assert (several.mean(0) - wanted).norm() < 3 * error
    assert error < 0.2 * wanted.norm()


def test_reinforce_points_where_the_expectation_does_and_the_others_near_it() -> None:
    """Those are biased, as they are known to be."""
    found = {name: measure_gradient_agreement(name, 1) for name in AGGREGATES}
    assert found.pop("reinforce") > 0.995
    assert all(0.3 < cosine < 0.99 for cosine in found.values()), found


def climb(name: str | None, steps: int = 40) -> float:
    """Return how much the exact expectation grows if only the attention is trained: by its own gradient, or another."""
    own = build_case(7)
    before, optimizer = float(compute_exact_objective(own).detach()), torch.optim.Adam(own.attention_parameters, 0.03)
    torch.manual_seed(11)
    for _ in range(steps):
        optimizer.zero_grad()
        if name is None:
            (-compute_exact_objective(own)).backward()
        else:
            with use_aggregate(own.model, AGGREGATES[name]()):
                (-estimate_objective(own, 64)).backward()
        optimizer.step()
    return float(compute_exact_objective(own).detach()) - before


@pytest.fixture(scope="module")
def best() -> float:
    return climb(None)


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_estimator_learns_where_to_look(name: str, best: float) -> None:
    """Nothing else is learned, so that only better looks can help: nearly as much as the exact gradient does."""
    assert best > 0.1
    assert climb(name) > 0.5 * best


def test_too_many_ways_of_looking_are_refused(scenes: GradientCase) -> None:
    with pytest.raises(InputError, match="got 16 regions and 4 words, expected at most 5000 ways of looking"):
        compute_expected_log_likelihood(
            scenes.model, scenes.source, torch.cat([scenes.tokens, scenes.tokens[:, 1:]], 1)
        )
