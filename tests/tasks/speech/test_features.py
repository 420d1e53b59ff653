"""The spectrogram is its definition; another rate is the same sound."""

import math

import pytest
import torch

from regard.errors import InputError
from regard.tasks.speech.features import RANGE, SpectrogramConfig, log_mel, resample

SMALL = SpectrogramConfig(rate=1000, filters=5, window=11.0, hop=7.0)


def compute_by_definition(samples: list[float], features: SpectrogramConfig) -> list[list[float]]:
    """Frame by frame, bin by bin, band by band, in plain Python."""
    wide, points, step, rate = features.window_size, features.fft_size, features.hop_size, features.rate
    window = [0.5 - 0.5 * math.cos(2 * math.pi * n / wide) for n in range(wide)]
    top = 2595 * math.log10(1 + rate / 2 / 700)
    table = []
    for frame in range(1 + len(samples) // step):
        begin, bands = frame * step - wide // 2, []
        inside = [samples[begin + n] if 0 <= begin + n < len(samples) else 0.0 for n in range(wide)]
        power = []
        for k in range(points // 2 + 1):
            angles = [2 * math.pi * k * n / points for n in range(wide)]
            real = sum(w * x * math.cos(a) for w, x, a in zip(window, inside, angles, strict=True))
            imaginary = sum(w * x * math.sin(a) for w, x, a in zip(window, inside, angles, strict=True))
            power.append(real**2 + imaginary**2)
        for band in range(1, features.filters + 1):
            center, width = band * top / (features.filters + 1), top / (features.filters + 1)
            places = [2595 * math.log10(1 + k * rate / points / 700) for k in range(points // 2 + 1)]
            bands.append(sum(p * max(0.0, 1 - abs(m - center) / width) for p, m in zip(power, places, strict=True)))
        table.append(bands)
    floor = RANGE * max(map(max, table))
    return [[math.log(max(band, floor)) for band in row] for row in table]


def test_it_is_the_definition() -> None:
    # An even window lies as stft lays it: the middle of the window on the middle of the frame.
    features = SpectrogramConfig(rate=1000, filters=5, window=12.0, hop=7.0)
    samples = torch.randn(60, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    table = torch.tensor(compute_by_definition(samples.tolist(), features), dtype=torch.float64)
    expected = (table - table.mean()) / table.std(correction=0)
    assert torch.allclose(log_mel(samples, features), expected, atol=1e-5)


def test_loudness_does_not_matter() -> None:
    samples = torch.randn(500)
    assert torch.allclose(log_mel(samples, SMALL), log_mel(0.01 * samples, SMALL), atol=1e-4)


@pytest.mark.parametrize("count", [1, 6, 7, 8, 100])
def test_the_number_of_frames_is_known_before(count: int) -> None:
    assert log_mel(torch.ones(count), SMALL).shape == (SMALL.count_frames(count), 5)


@pytest.mark.parametrize(("rate", "wanted"), [(44100, 8000), (8000, 16000), (22050, 8000)])
def test_another_rate_is_the_same_sound(rate: int, wanted: int) -> None:
    seconds = 0.5

    def make_hum(at: int) -> torch.Tensor:
        times = torch.arange(round(seconds * at), dtype=torch.float64) / at
        fade = torch.sin(math.pi * times / seconds) ** 2
        return fade * (torch.sin(2 * math.pi * 440 * times) + 0.3 * torch.sin(2 * math.pi * 1234 * times))

    assert torch.allclose(resample(make_hum(rate), rate, wanted), make_hum(wanted), atol=2e-3)


def test_what_the_new_rate_cannot_hold_is_left_out() -> None:
    times = torch.arange(16000, dtype=torch.float64) / 16000
    assert resample(torch.sin(2 * math.pi * 6000 * times), 16000, 8000).abs().max() < 1e-6


def test_a_hop_of_no_sample_is_refused() -> None:
    with pytest.raises(InputError, match=r"hop: got 0.1 ms at 1000 samples a second, expected at least one sample"):
        SpectrogramConfig(rate=1000, hop=0.1)
