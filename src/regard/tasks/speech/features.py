"""Logarithmic mel spectrograms, and conversion of sample rates."""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor
from regard.datasets.bounds import get_bound
from regard.errors import wrong
from regard.models.ranges import CheckedConfig, Count, Positive

RANGE = 1e-6  # of the largest power: what is fainter, 60 dB below it, counts as silence
BLOCK = get_bound("sound", "block")  # samples that are converted to another rate at once
MARGIN = 2**13  # samples on both sides of a block, faded


@dataclass(frozen=True, slots=True)
class SpectrogramConfig(CheckedConfig):
    """How sound becomes frames."""

    rate: Count = 8000  # samples a second; sound of another rate is converted
    filters: Count = 40  # of the mel scale: numbers in a frame
    window: Positive = 25.0  # milliseconds under a window
    hop: Positive = 10.0  # milliseconds from one window to the next

    def check(self) -> None:
        if self.hop_size < 1 or self.window_size < 2:
            got = f"{self.hop} ms at {self.rate} samples a second"
            raise wrong("hop", got, "at least one sample", "use 10, and 25 for the window")

    @property
    def hop_size(self) -> int:
        """Samples from one frame to the next."""
        return round(self.rate * self.hop / 1000)

    @property
    def window_size(self) -> int:
        """Samples under a window."""
        return round(self.rate * self.window / 1000)

    @property
    def fft_size(self) -> int:
        """Of the Fourier transform: the next power of two."""
        return 1 << (self.window_size - 1).bit_length()

    def count_frames(self, samples: int) -> int:
        """Return the number of frames of a sound."""
        return 1 + samples // self.hop_size


def log_mel(samples: Float[Tensor, " sample"], features: SpectrogramConfig) -> Float[Tensor, "frame filter"]:
    r"""Return the logarithm of the power in each band of the mel scale, with mean 0 and variance 1 over the whole.

    $$ S_{tb} = \log \max\Bigl(\sum_k M_{bk} \Bigl\lvert \sum_n w_n x_{tH+n-W/2}\, e^{-2\pi i k n / N} \Bigr\rvert^2,\;
    10^{-6} \max_{t,b} \cdot \Bigr) $$

    with $x$ = `samples`, $w$ a Hann window of $W$ samples, $H$ the hop and $M$ = `mel_bank`. The
    loudness of a sound changes nothing.
    """
    spectrum = torch.stft(
        samples,
        n_fft=features.fft_size,
        hop_length=features.hop_size,
        win_length=features.window_size,
        window=torch.hann_window(features.window_size, dtype=samples.dtype),
        pad_mode="constant",
        return_complex=True,
    )
    power = mel_bank(features).to(samples.dtype) @ spectrum.abs().square()
    logs = power.clamp_min(float(power.max()) * RANGE).log().T
    return (logs - logs.mean()) / logs.std(correction=0).clamp_min(1e-3)


@lru_cache(maxsize=8)
def mel_bank(features: SpectrogramConfig) -> Float[Tensor, "filter bin"]:
    """Return triangular filters on the mel scale, each as wide as two steps of that scale."""
    frequencies = torch.arange(features.fft_size // 2 + 1, dtype=torch.float64) * features.rate / features.fft_size
    scale, top = mel(frequencies), float(mel(torch.tensor(features.rate / 2, dtype=torch.float64)))
    centers = torch.arange(1, features.filters + 1) * top / (features.filters + 1)
    away = (scale - centers[:, None]).abs() * (features.filters + 1) / top
    return (1 - away).clamp_min(0).float()


def mel(frequencies: Tensor) -> Tensor:
    """Return frequencies in Hz on the mel scale.

    >>> mel(torch.tensor([1000.0])).round()
    tensor([1000.])
    """
    return 2595 * torch.log10(1 + frequencies / 700)


def resample(samples: Float[Tensor, " sample"], rate: int, wanted: int) -> Float[Tensor, " resample"]:
    """Return a sound at another rate: frequencies that one of both rates cannot hold are left out.

    A long sound is converted block by block, so that the memory it takes beside itself does not grow with it.

    >>> resample(torch.ones(400), 16000, 8000).shape
    torch.Size([200])
    """
    if rate == wanted or not len(samples):
        return samples
    before, after = rate // math.gcd(rate, wanted), wanted // math.gcd(rate, wanted)
    groups = math.ceil(len(samples) / before)
    block = math.ceil(BLOCK / before)  # groups of a block
    if groups <= block:
        found = stretch(samples, groups * before, groups * after)
    else:
        starts = range(0, groups, block)
        found = torch.cat([resample_block(samples, before, after, start, block) for start in starts])
    return found[: round(len(samples) * wanted / rate)]


def resample_block(
    samples: Float[Tensor, " sample"], before: int, after: int, start: int, groups: int
) -> Float[Tensor, " resample"]:
    """Return groups of `before` samples as groups of `after`, from the group `start` on.

    A part that begins and ends abruptly rings. So it has margins on both sides, which are faded and then cut off.
    """
    margin = math.ceil(MARGIN / before)
    begin, end = (start - margin) * before, (start + groups + margin) * before
    part = samples[max(0, begin) : end]
    part = F.pad(part, (max(0, -begin), end - max(0, begin) - len(part)))
    fade = torch.ones(end - begin, dtype=samples.dtype)
    rise = torch.sin(torch.linspace(0, math.pi / 2, margin * before, dtype=samples.dtype)).square()
    fade[: len(rise)], fade[-len(rise) :] = rise, rise.flip(0)
    whole = stretch(part * fade, end - begin, (groups + 2 * margin) * after)
    return whole[margin * after : (margin + groups) * after]


def stretch(samples: Float[Tensor, " sample"], before: int, after: int) -> Float[Tensor, " stretch"]:
    """Return `before` samples, padded with zeros if there are fewer, as `after` samples.

    Played at the same rate, they are slower and deeper, or faster and higher.
    """
    spectrum = torch.fft.rfft(samples, n=before)
    changed: Tensor = torch.fft.irfft(spectrum, n=after) * (after / before)
    return changed
