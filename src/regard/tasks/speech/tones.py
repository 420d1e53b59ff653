"""Generated sound: a tone for each symbol, in noise."""

import math
from collections.abc import Callable
from random import Random

import torch

from regard.algebra.shapes import Float, Tensor
from regard.errors import wrong
from regard.tasks.data.generated_data import GeneratedData
from regard.tasks.speech.clips import Clip

SYMBOLS = "abcdefgh"
LOWEST, HIGHEST = 300.0, 2400.0  # Hz, of the first and the last symbol
TONE, GAP = (0.10, 0.20), (0.03, 0.10)  # seconds, at least and at most
COUNT = (2, 6)  # symbols of a sequence
NOISE = 0.03  # of full scale
FADE = 0.01  # seconds in which a tone comes and goes, so that it does not click


class Tones(GeneratedData[Clip]):
    """Sequences of symbols, each played as a tone. A sequence belongs to one split by its hash."""

    def __init__(self, rate: int, *, size: int, held_out: int, seed: int) -> None:
        if rate < 2 * HIGHEST:
            raise wrong("rate", rate, f"at least {2 * HIGHEST:.0f}, for the highest tone", "use 8000")
        super().__init__(size, held_out, seed)
        self.rate = rate

    def draw(self, random: Random) -> tuple[str, Callable[[str], Clip]]:
        text = "".join(random.choices(SYMBOLS, k=random.randint(*COUNT)))
        return text, lambda name: Clip(synthesize_symbols(text, self.rate, random), text, name)


def synthesize_symbols(text: str, rate: int, random: Random) -> Float[Tensor, " sample"]:
    """Return a tone for each symbol with gaps between; length, loudness and pitch vary a little."""
    parts = [make_silence(random.uniform(*GAP), rate)]
    for symbol in text:
        parts.append(synthesize_tone(SYMBOLS.index(symbol), random, rate))
        parts.append(make_silence(random.uniform(*GAP), rate))
    samples = torch.cat(parts)
    source = torch.Generator().manual_seed(random.getrandbits(32))
    return samples + NOISE * torch.randn(len(samples), generator=source)


def synthesize_tone(index: int, random: Random, rate: int) -> Float[Tensor, " sample"]:
    """Return the tone of a symbol by its index: equal steps of pitch from one to the next."""
    pitch = LOWEST * (HIGHEST / LOWEST) ** (index / (len(SYMBOLS) - 1)) * random.uniform(0.97, 1.03)
    count = round(random.uniform(*TONE) * rate)
    times = torch.arange(count) / rate
    edge = torch.minimum(times, times.flip(0)).clamp_max(FADE) / FADE
    phase = random.uniform(0, 2 * math.pi)
    return random.uniform(0.2, 0.6) * edge * torch.sin(2 * math.pi * pitch * times + phase)


def make_silence(seconds: float, rate: int) -> Float[Tensor, " sample"]:
    """Return samples of silence."""
    return torch.zeros(round(seconds * rate))
