"""Aggregates: soft and hard, with the exact expectation over all choices as the oracle."""

import math
import re

import pytest
import torch

from regard import (
    Aggregate,
    Argmax,
    Baseline,
    Gumbel,
    InputError,
    Lengths,
    Mask,
    Prior,
    Sample,
    Soft,
    Softmax,
    StraightThroughGumbel,
    attend,
    reinforce,
)
from regard.algebra.aggregates import AggregateResult
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Tensor
from regard.compute.planning import BackendName

SHARES = torch.tensor([0.4, 0.05, 0.25, 0.3], dtype=torch.float64)
REWARDS = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
BACKENDS: list[BackendName] = ["eager", "rows"]


def draw_tensors() -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (torch.randn(2, 3, n, 11, dtype=torch.float64, requires_grad=True) for n in (5, 7, 7))
    return query, key, value


def draw_keys(count: int, aggregate: Aggregate, logits: Tensor = SHARES) -> tuple[Tensor, Tensor | None]:
    """Draw one of four keys for each of `count` sequences, with weights that are the softmax of `logits`."""
    blank = torch.zeros(count, 1, 2, dtype=torch.float64)
    keys, value = torch.zeros(count, 4, 2, dtype=torch.float64), torch.eye(4, dtype=torch.float64).expand(count, 4, 4)
    attended = attend(blank, keys, value, bias=Prior(logits), aggregate=aggregate)
    return attended.output[:, 0], None if attended.log_prob is None else attended.log_prob[:, 0]


def test_soft_is_the_weights_themselves() -> None:
    weights = torch.rand(5, 7)
    choice: AggregateResult = Soft()(weights, Pairs(5, 7), None)
    assert choice.weights is weights
    assert choice.log_prob is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_argmax_reads_one_value_and_learns_as_if_it_were_soft(backend: BackendName) -> None:
    tensors = draw_tensors()
    hard = attend(*tensors, aggregate=Argmax(), backend=backend)
    soft = attend(*tensors)
    best = soft.weights.dense().argmax(-1)
    picked = tensors[2].gather(-2, best[..., None].expand(-1, -1, -1, 11))
    assert torch.equal(hard.output, picked)
    mixture = torch.randn_like(picked)
    query, key, _ = tensors
    found = torch.autograd.grad((hard.output * mixture).sum(), (query, key), retain_graph=True)
    true = torch.autograd.grad((soft.output * mixture).sum(), (query, key))
    for a, b in zip(found, true, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)
    (value_grad,) = torch.autograd.grad((hard.output * mixture).sum(), tensors[2])
    assert torch.allclose(value_grad.sum((-2, -1)), mixture.sum((-2, -1)))


def test_the_first_of_equal_weights_is_taken() -> None:
    weights = torch.tensor([[0.2, 0.4, 0.4], [0.0, 0.0, 0.0]])
    assert Argmax()(weights, Pairs(2, 3), None).weights.tolist() == [[0, 1, 0], [0, 0, 0]]


def test_a_hard_aggregate_is_exactly_one_hot() -> None:
    """Also where the gradient passes straight through: 1 − w + w must be 1 to the last digit."""
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        weights = torch.softmax(torch.randn(211, 7), -1).to(dtype).requires_grad_()
        for aggregate in (Argmax(), StraightThroughGumbel(0.7)):
            hard = aggregate(weights, Pairs(211, 7), torch.tensor(3)).weights
            assert ((hard == 0) | (hard == 1)).all()
            assert (hard.sum(-1) == 1).all()


def test_a_cold_gumbel_is_the_straight_one_and_a_hot_one_sees_all_alike() -> None:
    weights = torch.softmax(torch.randn(5, 7, dtype=torch.float64), -1)
    weights = weights.masked_fill(torch.rand(5, 7) < 0.3, 0.0)
    pairs, seed = Pairs(5, 7), torch.tensor(11)
    straight = StraightThroughGumbel()(weights, pairs, seed).weights
    assert torch.allclose(Gumbel(1e-9)(weights, pairs, seed).weights, straight, rtol=0, atol=1e-12)
    some = (weights > 0).double()
    hot = Gumbel(1e9)(weights, pairs, seed).weights
    assert torch.allclose(hot, some / some.sum(-1, keepdim=True), rtol=0, atol=1e-6)


def test_gumbel_is_the_softmax_of_logarithms_and_noise() -> None:
    """With the same noise at two temperatures: log ŵ · τ differs by a number for each row only."""
    weights = torch.softmax(torch.randn(5, 7, dtype=torch.float64), -1)
    pairs, seed = Pairs(5, 7), torch.tensor(11)
    one, two = (Gumbel(t)(weights, pairs, seed).weights.log() * t for t in (0.5, 2.0))
    difference = one - two
    assert torch.allclose(difference, difference[:, :1].expand_as(difference), rtol=0, atol=1e-9)
    noise = one - weights.log()
    again = Gumbel(0.5)(torch.full_like(weights, 1 / 7), pairs, seed).weights.log() * 0.5
    apart = noise - again
    assert torch.allclose(apart, apart[:, :1].expand_as(apart), rtol=0, atol=1e-9)


@pytest.mark.parametrize("aggregate", [Sample(), StraightThroughGumbel(0.3)], ids=repr)
def test_picks_are_as_frequent_as_their_weights(aggregate: Aggregate) -> None:
    """Within five standard deviations of a binomial count: √(p (1 − p) / n)."""
    count = 20_000
    picks, _ = draw_keys(count, aggregate, SHARES.log())
    bound = 5 * (SHARES * (1 - SHARES) / count).sqrt()
    assert ((picks.mean(0) - SHARES).abs() <= bound).all()


def test_the_log_probability_is_of_the_pick() -> None:
    picks, log_prob = draw_keys(199, Sample(), SHARES.log())
    assert log_prob is not None
    assert torch.allclose(log_prob, SHARES.log()[picks.argmax(-1)], rtol=0, atol=1e-13)


def test_weights_that_sum_to_less_are_drawn_by_their_share() -> None:
    weights = torch.tensor([[0.1, 0.3]], dtype=torch.float64).expand(20_000, 1, 2)
    choice = Sample()(weights, Pairs(1, 2), torch.tensor(5))
    frequency = float(choice.weights[:, 0, 0].mean())
    assert abs(frequency - 0.25) <= 5 * math.sqrt(0.25 * 0.75 / 20_000)
    assert choice.log_prob is not None
    assert torch.allclose(choice.log_prob.exp()[:, 0], (choice.weights @ torch.tensor([0.25, 0.75]).double())[:, 0])


@pytest.mark.parametrize("aggregate", [Argmax(), Gumbel(), StraightThroughGumbel(), Sample()], ids=repr)
def test_an_empty_row_reads_nothing(aggregate: Aggregate) -> None:
    query, key, value = draw_tensors()
    attended = attend(query, key, value, mask=Lengths(torch.tensor([[0], [5]])), aggregate=aggregate)
    assert (attended.output[0] == 0).all()
    assert (attended.output[1] != 0).any()
    if attended.log_prob is not None:
        assert (attended.log_prob[0] == 0).all()
    grads = torch.autograd.grad(
        attended.output.sum() + (0 if attended.log_prob is None else attended.log_prob.sum()), (query, key, value)
    )
    assert all(torch.isfinite(grad).all() and (grad[0] == 0).all() for grad in grads)


@pytest.mark.parametrize("aggregate", [Gumbel(), StraightThroughGumbel(), Sample()], ids=repr)
def test_the_seed_governs_the_draw(aggregate: Aggregate) -> None:
    query, key, value = (tensor.detach() for tensor in draw_tensors())
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append(attend(query, key, value, aggregate=aggregate).output)
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


@pytest.mark.parametrize("aggregate", [Gumbel(), StraightThroughGumbel(), Sample()], ids=repr)
def test_the_weights_that_are_looked_at_later_are_those_that_were_drawn(aggregate: Aggregate) -> None:
    query, key, value = (tensor.detach() for tensor in draw_tensors())
    attended = attend(query, key, value, aggregate=aggregate)
    assert torch.allclose(attended.weights.dense() @ value, attended.output, rtol=0, atol=1e-13)
    assert torch.allclose(attended.weights.tile(slice(2, 4), slice(1, 6)), attended.weights.dense()[..., 2:4, 1:6])


def test_one_log_probability_for_each_query_whatever_is_shared() -> None:
    query, key, value = torch.randn(5, 11), torch.randn(7, 11), torch.randn(2, 3, 7, 13)
    attended = attend(query, key, value, aggregate=Sample())
    assert attended.log_prob is not None
    assert attended.log_prob.shape == (2, 3, 5)


def test_reinforce_is_unbiased_by_enumeration() -> None:
    """Σ_j p_j ∇L_j = −∇ Σ_j p_j R_j for any baseline, since Σ_j p_j ∇ log p_j = 0."""
    scores = torch.randn(4, dtype=torch.float64, requires_grad=True)
    log_p = torch.log_softmax(scores, 0)
    (true,) = torch.autograd.grad(-(log_p.exp() * REWARDS).sum(), scores, retain_graph=True)
    for value in (0.0, 1.7, -30.0):
        found = torch.zeros(4, dtype=torch.float64)
        for j in range(4):
            loss, _ = reinforce(log_p[j], REWARDS[j], Baseline(value, batches=1))
            found += log_p[j].exp().detach() * torch.autograd.grad(loss, scores, retain_graph=True)[0]
        assert torch.allclose(found, true, rtol=0, atol=1e-12)


def compute_variance(value: float) -> float:
    """Return the variance of the gradient of one draw, summed over coordinates, by enumeration."""
    scores = SHARES.log().requires_grad_()
    log_p = torch.log_softmax(scores, 0)
    grads = [
        torch.autograd.grad(reinforce(log_p[j], REWARDS[j], Baseline(value, batches=1))[0], scores, retain_graph=True)[
            0
        ]
        for j in range(4)
    ]
    table = torch.stack(grads)
    mean = (SHARES[:, None] * table).sum(0)
    return float((SHARES[:, None] * (table - mean).square()).sum())


def test_a_baseline_near_the_mean_reward_reduces_the_variance() -> None:
    mean = float((SHARES * REWARDS).sum())
    assert compute_variance(mean) < 0.8 * compute_variance(0.0)
    assert compute_variance(mean) < compute_variance(mean + 5)


def test_reinforce_through_attention_finds_the_gradient_of_the_expectation() -> None:
    """Within five standard errors, whose size follows from the shares and rewards alone."""
    count, b = 40_000, 1.0
    logits = SHARES.log().requires_grad_()
    picks, log_prob = draw_keys(count, Sample(), logits)
    assert log_prob is not None
    loss, _ = reinforce(log_prob, picks.detach() @ REWARDS, Baseline(b, batches=1))
    (found,) = torch.autograd.grad(loss, logits)
    p = SHARES / SHARES.sum()
    true = -p * (REWARDS - (p * REWARDS).sum())
    one = -(REWARDS - b)[:, None] * (torch.eye(4).double() - p)  # the gradient if key j was drawn
    spread = ((p[:, None] * (one - true).square()).sum(0) / count).sqrt()
    assert ((found - true).abs() <= 5 * spread).all()


def test_no_gradient_flows_through_the_reward() -> None:
    reward = REWARDS.clone().requires_grad_()
    log_prob = torch.randn(4, dtype=torch.float64, requires_grad=True)
    loss, _ = reinforce(log_prob, reward, Baseline())
    loss.backward()  # type: ignore[no-untyped-call]
    assert reward.grad is None
    assert log_prob.grad is not None


def test_the_baseline_moves_by_its_decay() -> None:
    """The first batch sets it; then 0.9 · 1 + 0.1 · 3 = 1.2 and 0.9 · 1.2 + 0.1 · 5 = 1.58."""
    baseline, found = Baseline(), []
    for rewards in ([0.0, 2.0], [3.0, 3.0], [4.0, 6.0]):
        _, baseline = reinforce(torch.zeros(2), torch.tensor(rewards), baseline)
        found.append(baseline.value)
    assert found == pytest.approx([1.0, 1.2, 1.58])
    assert baseline.batches == 3


def test_the_advantage_is_measured_from_the_baseline_before() -> None:
    log_prob, reward = torch.tensor([-1.0, -2.0]), torch.tensor([4.0, 7.0])
    loss, after = reinforce(log_prob, reward, Baseline(3.0, batches=5))
    assert float(loss) == pytest.approx((1 * 1.0 + 4 * 2.0) / 2)
    assert after.value == pytest.approx(0.9 * 3 + 0.1 * 5.5)
    first, _ = reinforce(log_prob, reward, Baseline())
    assert float(first) == pytest.approx((-1.5 * 1.0 + 1.5 * 2.0) / 2)


def test_the_entropy_term_rewards_looking_around() -> None:
    log_prob, reward = torch.tensor([-1.0]), torch.tensor([4.0])
    plain, _ = reinforce(log_prob, reward, Baseline(3.0, batches=1))
    entropy = torch.tensor([0.5, 1.5])
    found, _ = reinforce(log_prob, reward, Baseline(3.0, batches=1), entropy=entropy, bonus=0.1)
    assert float(plain - found) == pytest.approx(0.1)
    logits = SHARES.log().requires_grad_()
    weights = torch.softmax(logits, 0)
    loss, _ = reinforce(
        torch.zeros(1), torch.zeros(1), Baseline(), entropy=torch.special.entr(weights).sum(), bonus=1.0
    )
    (grad,) = torch.autograd.grad(loss, logits)
    below = SHARES.log().mul(SHARES).sum().exp() > SHARES  # above e^−H: less of it
    assert torch.equal(grad < 0, below)


def test_one_reward_a_sequence_must_say_so() -> None:
    """(batch,) against (batch, queries) would meet the wrong axis, in silence where both are equal."""
    sentence = "reward: got shape (5,), expected the axes of log_prob, (5, 5); "
    sentence += "fix: write reward[:, None] for one of a sequence"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        reinforce(torch.zeros(5, 5), torch.zeros(5), Baseline())


@pytest.mark.parametrize("aggregate", [Gumbel, StraightThroughGumbel])
@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_a_temperature_that_is_none_is_one_sentence(aggregate: type[Gumbel], temperature: float) -> None:
    sentence = f"temperature: got {temperature}, expected a number above 0; fix: start at 1.0 and anneal it"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        aggregate(temperature)


@pytest.mark.parametrize("aggregate", [Gumbel(), StraightThroughGumbel(), Sample()], ids=repr)
def test_a_draw_without_a_seed_is_one_sentence(aggregate: Aggregate) -> None:
    sentence = "^seed: got None, expected a seed for a random aggregate; fix: let attend\\(\\) draw it$"
    with pytest.raises(InputError, match=sentence):
        aggregate(torch.rand(2, 3), Pairs(2, 3), None)


def test_a_pick_stays_within_the_mask() -> None:
    mask = Mask.keep(torch.rand(5, 7) < 0.4)
    query, key, value = (tensor.detach() for tensor in draw_tensors())
    for aggregate in (Argmax(), Gumbel(), StraightThroughGumbel(), Sample()):
        weights = attend(query, key, value, mask=mask, normalizer=Softmax(5.0), aggregate=aggregate).weights.dense()
        assert (weights[..., ~mask.table(5, 7)] == 0).all()


@pytest.mark.parametrize("name", ["sample", "gumbel-straight"])
def test_dropout_does_not_know_which_key_was_drawn(name: str) -> None:
    """Half of the drawn keys are dropped: noise that both share would drop all of them, or none."""
    torch.manual_seed(3)
    same, value = torch.zeros(1, 4000, 2), torch.ones(1, 4, 1)
    output = attend(same, same[:, :4], value, aggregate=name, dropout=0.5).output
    assert 0.45 < float((output == 0).double().mean()) < 0.55
