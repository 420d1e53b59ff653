"""Make our operator an attention implementation of transformers: `attn_implementation="regard"`.

A model then computes with `attend`, also in generation and with grouped heads, and `output_attentions=True` returns
weights without leaving the fused path. It can be set for a single layer, through that layer's own config.
"""

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from regard.algebra.biases import Bias, Dense
from regard.algebra.masks import Causal, Full, Mask
from regard.algebra.masks.conversion import from_sdpa
from regard.algebra.scores import Capped, ScaledDot, Score
from regard.algebra.shapes import Tensor
from regard.compute.attend import AttentionResult, attend
from regard.errors import wrong

NAME = "regard"


def register() -> None:
    """Register the name with transformers (needs the extra `hf`); calling it again changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, regard_attention_forward)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def regard_attention_forward(  # noqa: PLR0913  # as transformers has it
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """Return the output (batch, queries, heads, dim) for a layer of transformers, and the weights if asked for."""
    for name in ("s_aux", "cache"):
        if others.get(name) is not None:
            raise wrong(name, f"a {type(others[name]).__name__}", "none", "use attn_implementation='sdpa'")
    mask, bias = _build_mask(module, query, key, attention_mask, is_causal), None
    if attention_mask is not None and attention_mask.dtype != torch.bool:
        bias = attention_mask
    if position_bias is not None:
        bias = position_bias if bias is None else bias + position_bias
    attended = _attend(query, key, value, _build_score(query, scaling, softcap), mask, bias, dropout)
    output = attended.output.transpose(1, 2).contiguous()
    return output, attended.weights.dense() if wants_weights(module, others) else None


def wants_weights(module: nn.Module, others: Mapping[str, Any]) -> bool:
    """Return whether weights are asked for: by the argument, by the config, or by transformers' output collector.

    Some models, GPT-2 among them, do not pass `output_attentions` on, so that only the collector knows.
    """
    if others.get("output_attentions") or getattr(getattr(module, "config", None), "output_attentions", False):
        return True
    collector = getattr(sys.modules.get("transformers.utils.output_capturing"), "_active_collector", None)
    collected = None if collector is None else collector.get()
    return any(name.endswith("attentions") for name in collected or ())


def _attend(
    query: Tensor, key: Tensor, value: Tensor, score: Score, mask: Mask, bias: Tensor | None, dropout: float
) -> AttentionResult:
    """Attend, with the keys and values of each group repeated for its heads."""
    table: Bias | None = None if bias is None else Dense(bias)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (part.repeat_interleave(groups, dim=1) for part in (key, value))
    return attend(query, key, value, score=score, bias=table, mask=mask, dropout=dropout)


def _build_score(query: Tensor, scaling: float | None, softcap: float | None) -> Score:
    width = query.shape[-1]
    score: Score = ScaledDot()
    if scaling is not None and abs(scaling * width**0.5 - 1) > 1e-12:
        score = scaling * width**0.5 * score
    return score if softcap is None else Capped(score, softcap)


def _build_mask(module: nn.Module, query: Tensor, key: Tensor, given: Tensor | None, causal: bool | None) -> Mask:
    """Return the mask as transformers' fused implementation does: the flag counts without a mask and if queries > 1."""
    if given is not None:
        return from_sdpa(given) if given.dtype == torch.bool else Full()
    flag = getattr(module, "is_causal", True) if causal is None else causal
    if not flag or query.shape[2] == 1:
        return Full()
    if query.shape[2] != key.shape[2]:
        fix = "pass an attention_mask"
        raise wrong("keys", key.shape[2], f"{query.shape[2]}, as many as queries, under a causal flag", fix)
    return Causal()
