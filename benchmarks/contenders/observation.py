"""Models that are looked at while they run: GPT-2 of transformers in its default attention, one long self-attention."""

import importlib
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.claim import Contender
from benchmarks.contenders.tensors import draw_normal
from regard.inspect.observe import observe
from regard.inspect.recording import AttentionMap

TOP = 8


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """batch × length, a model of so many layers of `size` with `heads`."""

    batch: int
    length: int
    size: int
    heads: int
    layers: int = 1


def build_gpt2(sizes: ModelSizes, implementation: str) -> tuple[Any, Tensor]:
    """Return the model, of the same numbers each time, and its tokens."""
    library = importlib.import_module("transformers")
    config = library.GPT2Config(
        vocab_size=64,
        bos_token_id=0,
        eos_token_id=0,
        n_positions=sizes.length,
        n_embd=sizes.size,
        n_layer=sizes.layers,
        n_head=sizes.heads,
        use_cache=False,
        attn_implementation=implementation,
    )
    torch.manual_seed(1)
    model = library.GPT2Model(config).eval()
    return model, torch.randint(64, (sizes.batch, sizes.length), generator=torch.Generator().manual_seed(2))


def gpt2_observed(sizes: ModelSizes) -> Contender:
    """The model as it is by default, its entropies, masses and largest weights recorded."""
    model, tokens = build_gpt2(sizes, "sdpa")

    def forward() -> Tensor:
        with torch.no_grad(), observe(model, keep="statistics", top=TOP):
            output: Tensor = model(tokens)[0]
        return output

    return Contender(forward)


def gpt2_unobserved(sizes: ModelSizes) -> Contender:
    """The same, not observed."""
    model, tokens = build_gpt2(sizes, "sdpa")

    def forward() -> Tensor:
        with torch.no_grad():
            output: Tensor = model(tokens)[0]
        return output

    return Contender(forward)


def gpt2_eager(sizes: ModelSizes) -> Contender:
    """In eager attention, which gives the weights."""
    model, tokens = build_gpt2(sizes, "eager")

    def forward() -> Tensor:
        with torch.no_grad():
            output: Tensor = model(tokens, output_attentions=True)[0]
        return output

    return Contender(forward)


class LongAttention(nn.Module):
    """One self-attention over what it is given."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """The fused function of torch."""
        return F.scaled_dot_product_attention(query, key, key)


def long_observed(sizes: ModelSizes) -> Contender:
    """Entropy, mass, the largest weights and factors for tiles, of attention whose weights fit nowhere."""
    model, (query, key) = LongAttention(), draw_long_inputs(sizes)

    def forward() -> Tensor:
        with torch.no_grad(), observe(model, keep="tiles", top=TOP) as recording:
            output: Tensor = model(query, key)
        seen: AttentionMap = recording["LongAttention"]
        seen.downsample(0)
        seen.tile(0, slice(0, 64), slice(0, 64))
        return output

    return Contender(forward)


def long_unobserved(sizes: ModelSizes) -> Contender:
    """The same, not observed."""
    model, (query, key) = LongAttention(), draw_long_inputs(sizes)

    def forward() -> Tensor:
        with torch.no_grad():
            output: Tensor = model(query, key)
        return output

    return Contender(forward)


def draw_long_inputs(sizes: ModelSizes) -> tuple[Tensor, Tensor]:
    """Draw queries, and keys that are the values too."""
    shape = sizes.batch, sizes.heads, sizes.length, sizes.size // sizes.heads
    return draw_normal(*shape, seed=3), draw_normal(*shape, seed=4)
