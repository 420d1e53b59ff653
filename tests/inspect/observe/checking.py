"""What all tests of observing ask: the same bits with and without, and the weights of the definition."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import Recording, observe

FUNCTIONS = (
    (F, "scaled_dot_product_attention"),
    (F, "multi_head_attention_forward"),
    (torch, "_native_multi_head_attention"),
    (torch, "_transformer_encoder_layer_fwd"),
    (torch, "softmax"),
    (torch.Tensor, "softmax"),
    (nn.Module, "__call__"),
)


def list_patched() -> list[object]:
    """Return the functions that observing replaces for a while."""
    return [getattr(home, name) for home, name in FUNCTIONS]


def count_hooks(model: nn.Module) -> list[int]:
    """Return how many hooks each module has."""
    return [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]


def tensors_of(thing: Any) -> list[Tensor]:
    """Return every tensor in an output."""
    if isinstance(thing, Tensor):
        return [thing]
    if isinstance(thing, dict):
        thing = list(thing.values())
    return [tensor for part in thing for tensor in tensors_of(part)] if isinstance(thing, list | tuple) else []


def observe_unchanged(model: nn.Module, call: Callable[[], Any], **options: Any) -> Recording:
    """Return the recording of a call; raise unless it gives the same bits, and the same random numbers follow."""
    originals, attached = list_patched(), count_hooks(model)
    torch.manual_seed(5)
    before, plain_next = tensors_of(call()), torch.rand(1)
    torch.manual_seed(5)
    with observe(model, **options) as recording:
        after, next_number = tensors_of(call()), torch.rand(1)
    assert len(before) == len(after) > 0
    for one, other in zip(before, after, strict=True):
        assert torch.equal(one, other)
        assert one.requires_grad == other.requires_grad
    assert torch.equal(plain_next, next_number)
    assert list_patched() == originals
    assert count_hooks(model) == attached
    return recording


def close(seen: Tensor, expected: Tensor) -> None:
    """Equal to the definition as far as float32 goes."""
    torch.testing.assert_close(seen, expected, rtol=0, atol=1e-6)
