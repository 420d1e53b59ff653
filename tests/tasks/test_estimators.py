"""The four ways to learn where to look, on scenes, against the expectation over every way of looking."""

import pytest
import torch

from regard.errors import InputError
from regard.models.decoders.glancing import READINGS
from regard.tasks.captioning.estimating import Case, agreement, case, estimated, exact, flat
from regard.tasks.captioning.expectation import expected, reading_as


@pytest.fixture(scope="module")
def scenes() -> Case:
    return case(3)


def test_reinforce_is_unbiased_on_scenes(scenes: Case) -> None:
    wanted = flat(torch.autograd.grad(exact(scenes), scenes.looking))
    torch.manual_seed(5)
    several = torch.stack([flat(torch.autograd.grad(estimated(scenes, 1500), scenes.looking)) for _ in range(6)])
    error = several.std(0).norm() / len(several) ** 0.5
    assert (several.mean(0) - wanted).norm() < 3 * error
    assert error < 0.2 * wanted.norm()


def test_reinforce_points_where_the_expectation_does_and_the_others_near_it() -> None:
    """Those are biased, as they are known to be."""
    found = {name: agreement(name, 1) for name in READINGS}
    assert found.pop("reinforce") > 0.995
    assert all(0.3 < cosine < 0.99 for cosine in found.values()), found


def climbed(name: str | None, steps: int = 40) -> float:
    """How much the exact expectation grows while only where to look is learned: by its own gradient, or another."""
    own = case(7)
    before, optimizer = float(exact(own).detach()), torch.optim.Adam(own.looking, 0.03)
    torch.manual_seed(11)
    for _ in range(steps):
        optimizer.zero_grad()
        if name is None:
            (-exact(own)).backward()
        else:
            with reading_as(own.model, READINGS[name]()):
                (-estimated(own, 64)).backward()
        optimizer.step()
    return float(exact(own).detach()) - before


@pytest.fixture(scope="module")
def best() -> float:
    return climbed(None)


@pytest.mark.parametrize("name", READINGS)
def test_every_estimator_learns_where_to_look(name: str, best: float) -> None:
    """Nothing else is learned, so that only better looks can help: nearly as much as the exact gradient does."""
    assert best > 0.1
    assert climbed(name) > 0.5 * best


def test_too_many_ways_of_looking_are_refused(scenes: Case) -> None:
    with pytest.raises(InputError, match="got 16 regions and 4 words, expected at most 5000 ways of looking"):
        expected(scenes.model, scenes.source, torch.cat([scenes.tokens, scenes.tokens[:, 1:]], 1))
