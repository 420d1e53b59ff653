"""α-entmax below 1, against its conditions of optimality, closed forms and derivatives."""

import pytest
import torch

from regard import Causal, Entmax, Softmax, attend
from regard.compute.kernels.flat_entmax import flat_entmax

L, S = 5, 7


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9, 0.999])
def test_rows_sum_to_one_and_have_the_form_of_entmax(alpha: float) -> None:
    """p^(α−1) + (1 − α)·s is one number for all keys of a row: the gradient of Tsallis' entropy is the threshold."""
    scores, allowed = 3 * torch.randn(2, L, S).double(), torch.rand(2, L, S) < 0.7
    allowed[0, 0] = False
    weights = flat_entmax(scores, allowed, torch.tensor(alpha, dtype=torch.float64))
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).double())
    threshold = weights.where(allowed, 1.0) ** (alpha - 1) + (1 - alpha) * scores
    low, high = (threshold.where(allowed, fill) for fill in (torch.inf, -torch.inf))
    some = allowed.any(-1)
    torch.testing.assert_close(low.amin(-1)[some], high.amax(-1)[some], rtol=1e-9, atol=1e-9)
    assert not weights[~allowed].any()


def test_two_keys_at_one_half_by_hand() -> None:
    """α = ½: p = (c + d/2)^−2 for a gap d from the largest score, so that p^−½ differs by d/2."""
    weights = flat_entmax(torch.tensor([[0.0, -2.0]]).double(), None, torch.tensor(0.5))
    first, second = weights[0].tolist()
    assert second**-0.5 - first**-0.5 == pytest.approx(1.0)
    assert first + second == pytest.approx(1.0)


def test_near_one_it_is_softmax_and_lower_is_flatter() -> None:
    scores = torch.randn(L, S).double()
    near = flat_entmax(scores, None, torch.tensor(1 - 1e-6).double())
    torch.testing.assert_close(near, scores.softmax(-1), rtol=1e-4, atol=1e-5)
    largest = [float(flat_entmax(scores, None, torch.tensor(a)).max()) for a in (0.2, 0.6, 0.95)]
    assert largest == sorted(largest)


def test_derivatives_of_first_and_second_order() -> None:
    scores = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    alpha = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    allowed = torch.tensor([[True, True, False, True], [True, True, True, True]])
    assert torch.autograd.gradcheck(lambda s, a: flat_entmax(s, allowed, a), (scores, alpha))
    assert torch.autograd.gradgradcheck(lambda s, a: flat_entmax(s, allowed, a), (scores, alpha))


def test_heads_may_lie_on_both_sides_of_softmax() -> None:
    query, key = torch.randn(3, L, S).double(), torch.randn(3, L, S).double()
    alpha = torch.tensor([0.5, 1.0, 2.0]).double()
    for backend in ("auto", "eager"):
        together = attend(query, key, key, normalizer=Entmax(alpha), mask=Causal(), backend=backend).output
        for head, own in enumerate(alpha.tolist()):
            alone = attend(query[head], key[head], key[head], normalizer=Entmax(own), mask=Causal()).output
            torch.testing.assert_close(together[head], alone)
    plain = attend(query, key, key, normalizer=Softmax(), mask=Causal()).output
    torch.testing.assert_close(attend(query, key, key, normalizer=Entmax(1.0), mask=Causal()).output, plain)


@pytest.mark.parametrize("keys", [1, 2, 1009])
@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.5, 1 - 1e-9])
def test_the_steps_suffice_for_any_scores(alpha: float, keys: int) -> None:
    """Equal scores, one far above the others, halves far apart, and a long tail."""
    tail = torch.randn(keys).double().exp() ** 3
    kinds = [
        torch.zeros(keys),
        1e3 * (torch.arange(keys) == 0),
        30.0 * (torch.arange(keys) < keys // 2),
        tail,
        1e6 * tail,
    ]
    weights = flat_entmax(
        torch.stack([kind.double() for kind in kinds]), None, torch.tensor(alpha, dtype=torch.float64)
    )
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(kinds)).double(), rtol=0, atol=1e-12)


def test_an_alpha_that_is_traced_is_noticed() -> None:
    """Inside torch.func α cannot be read; a formula for α above 1 would be taken for it."""
    query, key = torch.randn(3, L, S).double(), torch.randn(3, L, S).double()
    alpha = torch.tensor([0.5, 1.0, 2.0]).double()

    def attend_with(one: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return attend(query, key, key, normalizer=Entmax(one)).output

    together = torch.func.vmap(attend_with)(alpha, query, key)
    for head, own in enumerate(alpha.tolist()):
        alone = attend(query[head], key[head], key[head], normalizer=Entmax(own)).output
        torch.testing.assert_close(together[head], alone)
    slope = torch.func.grad(lambda one: attend_with(one, query[0], key[0]).square().sum())(alpha[0])
    near = [attend_with(alpha[0] + step, query[0], key[0]).square().sum() for step in (-1e-6, 1e-6)]
    torch.testing.assert_close(slope, (near[1] - near[0]) / 2e-6, rtol=1e-6, atol=1e-8)
