"""Dot product, Gaussian and window: ours and what plain torch offers."""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

import regard
from benchmarks.claim import Contender
from benchmarks.contenders.tensors import draw_normal


@dataclass(frozen=True, slots=True)
class DotSizes:
    """batch × heads × length (of queries and of keys) × dim, and how many keys a query sees where there is a window."""

    batch: int
    heads: int
    length: int
    dim: int
    window: int = 0

    def half(self) -> "DotSizes":
        """Half the length, all else equal."""
        return replace(self, length=self.length // 2)


def draw(sizes: DotSizes) -> tuple[Tensor, Tensor, Tensor]:
    """Draw query, key and value."""
    shape = (sizes.batch, sizes.heads, sizes.length, sizes.dim)
    return draw_normal(*shape, seed=1), draw_normal(*shape, seed=2), draw_normal(*shape, seed=3)


def dot(sizes: DotSizes) -> Contender:
    """Our scaled dot product."""
    query, key, value = draw(sizes)
    return Contender(lambda: regard.attend(query, key, value).output, (query, key, value))


def sdpa(sizes: DotSizes) -> Contender:
    """torch's own function, bare."""
    query, key, value = draw(sizes)
    return Contender(lambda: F.scaled_dot_product_attention(query, key, value), (query, key, value))


def choose_bandwidth(sizes: DotSizes) -> float:
    """Return a Gaussian that sees several keys: squared distances of standard normal numbers are about 2·dim."""
    return float(sizes.dim**0.5)


def gaussian(sizes: DotSizes) -> Contender:
    """Our Nadaraya–Watson regression."""
    query, key, value = draw(sizes)
    score = regard.Gaussian(bandwidth=choose_bandwidth(sizes))
    return Contender(lambda: regard.attend(query, key, value, score=score).output, (query, key, value))


def gaussian_written_out(sizes: DotSizes) -> Contender:
    """Nadaraya–Watson as textbooks write it (d2l, §11.2): the difference of each pair, squared and summed."""
    query, key, value = draw(sizes)

    def forward() -> Tensor:
        difference = (query.unsqueeze(-2) - key.unsqueeze(-3)) / choose_bandwidth(sizes)
        return torch.softmax(-(difference**2).sum(-1) / 2, dim=-1) @ value

    return Contender(forward, (query, key, value))


def gaussian_cdist(sizes: DotSizes) -> Contender:
    """The distances by `torch.cdist`."""
    query, key, value = draw(sizes)

    def forward() -> Tensor:
        return torch.softmax(-((torch.cdist(query, key) / choose_bandwidth(sizes)) ** 2) / 2, dim=-1) @ value

    return Contender(forward, (query, key, value))


def window(sizes: DotSizes) -> Contender:
    """Our causal window."""
    query, key, value = draw(sizes)
    mask = regard.Window(before=sizes.window - 1, after=0)
    return Contender(lambda: regard.attend(query, key, value, mask=mask).output, (query, key, value))


def window_half(sizes: DotSizes) -> Contender:
    """The same for half the length."""
    return window(sizes.half())


def window_dense(sizes: DotSizes) -> Contender:
    """torch's function with a table of what is allowed."""
    query, key, value = draw(sizes)
    table = _build_table(sizes)
    return Contender(lambda: F.scaled_dot_product_attention(query, key, value, attn_mask=table), (query, key, value))


def window_float(sizes: DotSizes) -> Contender:
    """torch's function with a table of zeros and minus infinities, which it need not convert at each call."""
    query, key, value = draw(sizes)
    table = torch.zeros(sizes.length, sizes.length).masked_fill_(~_build_table(sizes), float("-inf"))
    return Contender(lambda: F.scaled_dot_product_attention(query, key, value, attn_mask=table), (query, key, value))


def _build_table(sizes: DotSizes) -> Tensor:
    index = torch.arange(sizes.length)
    distance = index[:, None] - index[None, :]
    return (distance >= 0) & (distance < sizes.window)
