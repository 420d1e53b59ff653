"""Masks that leave most keys out, and hard attention: ours, and what plain torch offers."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

import regard
from benchmarks.claim import Contender
from benchmarks.contenders.dot import DotSizes, draw
from regard.algebra.masks import Mask

GLOBAL = 4  # first keys that every query sees
BLOCK, SHARE = 128, 16  # of a table of blocks: the side of one, and how many there are for each that is seen


def attend_under(sizes: DotSizes, mask: Mask) -> Contender:
    """Our attention under a mask."""
    query, key, value = draw(sizes)
    return Contender(lambda: regard.attend(query, key, value, mask=mask).output, (query, key, value))


def global_tokens(sizes: DotSizes) -> Contender:
    """Our causal window, and the first keys."""
    return attend_under(
        sizes, regard.Window(sizes.window - 1, 0) | (regard.Lengths(torch.tensor(GLOBAL)) & regard.Causal())
    )


def global_tokens_half(sizes: DotSizes) -> Contender:
    """The same for half the length."""
    return global_tokens(sizes.half())


def global_tokens_in_chunks(sizes: DotSizes) -> Contender:
    """torch's function for one block of queries after another, with the keys that it may see, written by hand."""
    query, key, value = draw(sizes)
    parts = []
    for start in range(0, sizes.length, sizes.window):
        rows = torch.arange(start, min(start + sizes.window, sizes.length))
        first = max(0, start - sizes.window + 1)
        columns = torch.cat([torch.arange(min(GLOBAL, first)), torch.arange(first, int(rows[-1]) + 1)])
        behind = rows[:, None] - columns
        parts.append((rows, columns, (behind >= 0) & ((behind < sizes.window) | (columns < GLOBAL))))

    def forward() -> Tensor:
        made = [
            F.scaled_dot_product_attention(query[..., rows, :], key[..., columns, :], value[..., columns, :], allowed)
            for rows, columns, allowed in parts
        ]
        return torch.cat(made, dim=-2)

    return Contender(forward, (query, key, value))


def full_attention(sizes: DotSizes) -> Contender:
    """torch's function over all pairs."""
    query, key, value = draw(sizes)
    return Contender(lambda: F.scaled_dot_product_attention(query, key, value), (query, key, value))


def draw_blocks(sizes: DotSizes) -> Tensor:
    """Draw a table of pairs in which each block of queries sees its own block of keys and some others."""
    side = min(BLOCK, max(1, sizes.length // SHARE))
    count = -(-sizes.length // side)
    generator = torch.Generator().manual_seed(4)
    cells = torch.rand(count, count, generator=generator).argsort(-1) < max(1, count // SHARE - 1)
    cells |= torch.eye(count, dtype=torch.bool)
    return cells.repeat_interleave(side, 0).repeat_interleave(side, 1)[: sizes.length, : sizes.length]


def block_table(sizes: DotSizes) -> Contender:
    """Our attention under a table of blocks."""
    return attend_under(sizes, regard.Mask.keep(draw_blocks(sizes)))


def list_documents(sizes: DotSizes) -> list[int]:
    """Lengths of documents that fill a sequence: short, middling and long ones."""
    lengths: list[int] = []
    for length in [128, 512, 64, 1024, 256] * sizes.length:
        rest = sizes.length - sum(lengths)
        if rest <= 0:
            break
        lengths.append(min(max(1, length * sizes.length // 16_384), rest))
    return lengths


def documents(sizes: DotSizes) -> Contender:
    """Our attention within documents that are packed into one sequence."""
    lengths = torch.tensor(list_documents(sizes))
    return attend_under(sizes, regard.Documents(torch.repeat_interleave(torch.arange(len(lengths)), lengths)))


def documents_alone(sizes: DotSizes) -> Contender:
    """torch's function for each document by itself."""
    query, key, value = draw(sizes)
    lengths = list_documents(sizes)

    def forward() -> Tensor:
        parts = zip(*(tensor.split(lengths, dim=-2) for tensor in (query, key, value)), strict=True)
        return torch.cat([F.scaled_dot_product_attention(*part) for part in parts], dim=-2)

    return Contender(forward, (query, key, value))


def hard(sizes: DotSizes) -> Contender:
    """Our hard attention: the value of the largest score."""
    return without_gradient(sizes, lambda *given: regard.attend(*given, aggregate=regard.Argmax()).output)


def hard_learned(sizes: DotSizes) -> Contender:
    """The same with gradients."""
    query, key, value = draw(sizes)
    return Contender(lambda: regard.attend(query, key, value, aggregate=regard.Argmax()).output, (query, key, value))


def soft(sizes: DotSizes) -> Contender:
    """torch's soft attention."""
    return without_gradient(sizes, F.scaled_dot_product_attention)


def hard_textbook(sizes: DotSizes) -> Contender:
    """The value of the largest weight, as one writes it down."""

    def pick(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        weights = torch.softmax(query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5, dim=-1)
        return torch.take_along_dim(value, weights.argmax(-1, keepdim=True), -2)

    return without_gradient(sizes, pick)


def without_gradient(sizes: DotSizes, run: Callable[..., Tensor]) -> Contender:
    """A contender in evaluation."""
    given = draw(sizes)

    def forward() -> Tensor:
        with torch.inference_mode():
            return run(*given)

    return Contender(forward)
