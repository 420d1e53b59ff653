"""Noise by address: the same bits whoever computes them, and bits that look independent.

The statistical bounds are five standard errors of what independent uniform numbers would give: with a fixed seed
each test either always passes or always fails, and a sound generator fails one in two million.
"""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.compute.kernels import native, noise

B, H, L, S = 2, 3, 53, 101
SEED = 20_170_401
FIVE = 5.0


@pytest.fixture
def torch_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_draw_natively", lambda *arguments: None)


def draw_noise(seed: int | Tensor = SEED, lead: tuple[int, ...] = (B, H), rows: int = L, columns: int = S) -> Tensor:
    return noise.draw_uniform(seed, lead, torch.arange(rows), torch.arange(columns))


def hash_lowbias32(word: np.ndarray) -> np.ndarray:
    """Return the published function, in unsigned arithmetic."""
    word = word ^ (word >> np.uint32(16))
    word = word * np.uint32(0x7FEB352D)
    word = word ^ (word >> np.uint32(15))
    word = word * np.uint32(0x846CA68B)
    return word ^ (word >> np.uint32(16))


def measure_correlation(one: Tensor, other: Tensor) -> float:
    """Return the correlation in standard errors: of n independent pairs it has the standard deviation 1/√n."""
    together = torch.corrcoef(torch.stack([one.flatten(), other.flatten()]).double())
    return float(together[0, 1]) * math.sqrt(one.numel())


# -- one address, one number --------------------------------------------------------------------------


def test_mixing_is_the_published_function() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, 10_007, dtype=np.uint32)
    mixed = noise._mix(torch.from_numpy(words.view(np.int32))).numpy().view(np.uint32)
    assert (mixed == hash_lowbias32(words)).all()


def test_mixing_loses_nothing() -> None:
    words = torch.arange(1 << 20, dtype=torch.int32)
    assert noise._mix(words).unique().numel() == words.numel()


@pytest.mark.parametrize("seed", [0, 1, SEED, 2**62 + 3, -1])
def test_native_and_torch_give_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if native.load_library() is None:
        pytest.skip("no compiler here")
    rows, columns = torch.randint(0, 10**6, (L,)), torch.randint(0, 10**6, (S,))
    ours, kept = (
        noise.draw_uniform(seed, (B, H), rows, columns),
        noise.draw_dropout_factors(seed, (B, H), rows, columns, 0.3),
    )
    monkeypatch.setattr(noise, "_draw_natively", lambda *arguments: None)
    assert torch.equal(noise.draw_uniform(seed, (B, H), rows, columns), ours)
    assert torch.equal(noise.draw_dropout_factors(seed, (B, H), rows, columns, 0.3), kept)


@pytest.mark.slow
def test_generated_code_gives_the_same_bits() -> None:
    """Signed products wrap there too; without this test a compiler might think that they never do."""
    program = """
import torch
from regard.compute.kernels import noise
rows, columns, seed = torch.arange(53), torch.arange(101), torch.tensor(20_170_401)
draw = lambda seed: noise.draw_uniform(seed, (2, 3), rows, columns)
print(torch.equal(torch.compile(draw, fullgraph=True)(seed), draw(seed)))
"""
    # In a process of its own: the shape checks of the tests cannot be compiled.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


@pytest.mark.parametrize("route", ["native", "torch"])
def test_any_tile_is_a_part_of_the_whole(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if route == "torch":
        monkeypatch.setattr(noise, "_draw_natively", lambda *arguments: None)
    rows, columns = torch.randperm(L)[:7], torch.arange(11, 97, 5)
    assert torch.equal(noise.draw_uniform(SEED, (B, H), rows, columns), draw_noise()[..., rows, :][..., columns])
    assert torch.equal(
        noise.draw_uniform(SEED, (B, H), rows[:1], columns[:1]), draw_noise()[..., rows[:1], :][..., columns[:1]]
    )
    assert noise.draw_uniform(SEED, (B, H), rows[:0], columns).shape == (B, H, 0, len(columns))


def test_leading_axes_are_one_index() -> None:
    assert torch.equal(draw_noise(lead=(B, H)).reshape(B * H, L, S), draw_noise(lead=(B * H,)))
    assert torch.equal(draw_noise(lead=()), draw_noise(lead=(1,))[0])


def test_the_dtype_of_indices_and_seed_does_not_matter() -> None:
    narrow = noise.draw_uniform(torch.tensor(SEED), (B,), torch.arange(L, dtype=torch.int32), torch.arange(S))
    assert torch.equal(narrow, draw_noise(lead=(B,)))


def test_manual_seed_governs() -> None:
    torch.manual_seed(7)
    first, second = noise.draw_seed(), noise.draw_seed()
    torch.manual_seed(7)
    assert noise.draw_seed() == first
    assert first != second


# -- numbers that look independent --------------------------------------------------------------------


def test_uniform_noise_is_strictly_inside() -> None:
    extreme = torch.tensor([0, -1], dtype=torch.int32)  # all bits 0, all bits 1
    ends = ((extreme >> 9) & 0x7FFFFF).to(torch.float32).add_(0.5).mul_(2.0**-23)
    assert 0 < ends[0] < ends[1] < 1
    assert ends[0] == 2.0**-24
    assert 1 - ends[1] == 2.0**-24
    drawn = draw_noise()
    assert ((drawn > 0) & (drawn < 1)).all()


@pytest.mark.parametrize("seed", [0, 1, SEED, 2**40])
def test_mean_and_variance_are_those_of_uniform_numbers(seed: int) -> None:
    drawn = draw_noise(seed).double()
    count = drawn.numel()
    assert abs(float(drawn.mean()) - 1 / 2) < FIVE * math.sqrt(1 / 12 / count)
    # The fourth central moment is 1/80, so the variance of a squared deviation is 1/80 - 1/144 = 1/180.
    assert abs(float((drawn - 0.5).square().mean()) - 1 / 12) < FIVE * math.sqrt(1 / 180 / count)


def test_neighbors_are_not_correlated() -> None:
    drawn = draw_noise()
    assert abs(measure_correlation(drawn[..., 1:], drawn[..., :-1])) < FIVE
    assert abs(measure_correlation(drawn[..., 1:, :], drawn[..., :-1, :])) < FIVE
    assert abs(measure_correlation(drawn[..., 1:, 1:], drawn[..., :-1, :-1])) < FIVE
    assert abs(measure_correlation(drawn[:, 1:], drawn[:, :-1])) < FIVE
    assert abs(measure_correlation(drawn[..., :L], drawn[..., :L].mT)) < FIVE * math.sqrt(2), "each pair counts twice"


@pytest.mark.parametrize("other", [SEED + 1, SEED - 1, SEED ^ (1 << 31), SEED + (1 << 32), -SEED])
def test_seeds_close_to_each_other_give_unrelated_noise(other: int) -> None:
    one, two = draw_noise(SEED), draw_noise(other)
    assert abs(measure_correlation(one, two)) < FIVE
    for shift in range(1, 4):  # nor is one the other, moved by some places
        assert abs(measure_correlation(one[..., shift:], two[..., :-shift])) < FIVE
        assert abs(measure_correlation(one[..., shift:, :], two[..., :-shift, :])) < FIVE


@pytest.mark.parametrize("bins", [2, 16, 257])
def test_every_interval_gets_its_share(bins: int) -> None:
    drawn = draw_noise()
    counts = torch.histc(drawn, bins, 0.0, 1.0).double()
    expected = drawn.numel() / bins
    chi = float(((counts - expected) ** 2 / expected).sum())
    # χ² with k degrees of freedom has mean k and variance 2k.
    assert abs(chi - (bins - 1)) < FIVE * math.sqrt(2 * (bins - 1))


def test_pairs_of_neighbors_fill_the_square() -> None:
    drawn = (draw_noise() * 16).long()
    for first, second in [(drawn[..., ::2][..., :50], drawn[..., 1::2]), (drawn[..., :52:2, :], drawn[..., 1:52:2, :])]:
        counts = torch.bincount((first * 16 + second).flatten(), minlength=256).double()
        expected = first.numel() / 256
        chi = float(((counts - expected) ** 2 / expected).sum())
        assert abs(chi - 255) < FIVE * math.sqrt(2 * 255)


def test_every_bit_is_a_fair_coin() -> None:
    bits = noise._hash_pairs(SEED, (B, H), torch.arange(L), torch.arange(S))
    for place in range(32):
        ones = float(((bits >> place) & 1).double().mean())
        assert abs(ones - 0.5) < FIVE * 0.5 / math.sqrt(bits.numel())


# -- what is made of it -------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_keeps_its_share_and_the_expectation(rate: float) -> None:
    kept = noise.draw_dropout_factors(SEED, (B, H), torch.arange(L), torch.arange(S), rate)
    assert set(kept.unique().tolist()) == {0.0, torch.tensor(1 / (1 - rate)).item()}
    share = float((kept == 0).double().mean())
    assert abs(share - rate) < FIVE * math.sqrt(rate * (1 - rate) / kept.numel())


def test_dropout_at_its_ends() -> None:
    rows, columns = torch.arange(L), torch.arange(S)
    assert (noise.draw_dropout_factors(SEED, (B,), rows, columns, 0.0) == 1).all()
    assert (noise.draw_dropout_factors(SEED, (B,), rows, columns, 1.0) == 0).all()


@pytest.mark.usefixtures("torch_only")
def test_dropout_in_torch_at_its_ends() -> None:
    test_dropout_at_its_ends()


def test_gumbel_noise_has_the_moments_of_its_law() -> None:
    drawn = noise.draw_gumbel(SEED, (B, H), torch.arange(L), torch.arange(S)).double()
    count, variance = drawn.numel(), math.pi**2 / 6
    assert torch.isfinite(drawn).all()
    assert abs(float(drawn.mean()) - 0.57721566490153286) < FIVE * math.sqrt(variance / count)
    # Kurtosis 27/5: the variance of a squared deviation is (27/5 - 1) times the squared variance.
    spread = math.sqrt((27 / 5 - 1) * variance**2 / count)
    assert abs(float(drawn.var()) - variance) < FIVE * spread


def test_the_largest_of_gumbel_noise_samples_a_softmax() -> None:
    logits = torch.tensor([0.0, 1.0, -1.0, 0.5, 2.0])
    picks = (logits + noise.draw_gumbel(SEED, (), torch.arange(20_011), torch.arange(5))).argmax(-1)
    expected = torch.softmax(logits.double(), -1) * len(picks)
    chi = float(((torch.bincount(picks, minlength=5) - expected) ** 2 / expected).sum())
    assert chi < 4 + FIVE * math.sqrt(8)
