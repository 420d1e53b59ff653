"""Masks from and to the conventions of other libraries. Each function says what its True means."""

import torch

from regard.algebra.masks.base import Mask, Table
from regard.algebra.masks.lengths import Lengths
from regard.algebra.masks.patterns import Full
from regard.algebra.shapes import Bool, Int, Integer, Tensor, describe
from regard.errors import wrong, wrong_kind


def from_sdpa(mask: Tensor) -> Mask:
    """Return the mask of `F.scaled_dot_product_attention`: bool, True = may attend; or float, −inf = must not.

    A float mask with any other number in it is a bias: pass that as `bias=Dense(tensor)`.
    """
    if mask.dtype == torch.bool:
        return Table(mask, rows_are_queries=True)
    if bool(((mask != 0) & (mask != float("-inf"))).any()):
        raise wrong("attn_mask", "numbers other than 0 and -inf", "a mask", "pass bias=Dense(attn_mask) instead")
    return Table(mask == 0, rows_are_queries=True)


def to_sdpa(mask: Mask, queries: int, keys: int, *, device: torch.device | str = "cpu") -> Bool[Tensor, "..."]:
    """Return a bool `attn_mask` for `F.scaled_dot_product_attention`: True = may attend."""
    return mask.table(queries, keys, device=device)


def from_multihead(
    attn_mask: Bool[Tensor, "..."] | None = None,
    key_padding_mask: Bool[Tensor, "*batch key"] | None = None,
    *,
    heads: int | None = None,
) -> Mask:
    """Return the mask of `nn.MultiheadAttention`: bool, True = must **not** attend.

    `attn_mask` is (queries, keys), or (batch · heads, queries, keys) with the number of `heads`; `key_padding_mask` is
    (batch, keys), or (keys,) of a single sequence. The result has the lead axes (batch,), as layers want it, or
    (batch, heads) if heads differ, which layers take too; for tensors (batch, heads, …) write `.add_head_axis()`.
    """
    mask: Mask = Full()
    for name, part in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
        if part is not None and part.dtype != torch.bool:
            raise wrong_kind(name, describe(part), "a bool tensor", "write mask == float('-inf') for a float mask")
    if attn_mask is not None:
        if attn_mask.dim() == 3 and heads is None:
            raise wrong("heads", None, "the number of heads, which attn_mask holds with the batch", "pass heads=…")
        cells = attn_mask if attn_mask.dim() < 3 else attn_mask.unflatten(0, (-1, heads or 1))
        mask = Table(~cells, rows_are_queries=True)
    if key_padding_mask is not None:
        padding = Table(~key_padding_mask.unsqueeze(-2))
        mask = mask & (padding.add_head_axis() if attn_mask is not None and attn_mask.dim() == 3 else padding)
    return mask


def to_multihead(
    mask: Mask, queries: int, keys: int, *, heads: int | None = None, device: torch.device | str = "cpu"
) -> Bool[Tensor, "..."]:
    """Return a bool `attn_mask` for `nn.MultiheadAttention`: True = must not attend.

    (queries, keys), or (batch · heads, queries, keys) if the mask differs between sequences or heads.
    """
    hidden = ~mask.table(queries, keys, device=device)
    if hidden.dim() == 2:
        return hidden
    if heads is None:
        raise wrong("heads", None, "the number of heads, because the mask is not one table for all", "pass heads=…")
    hidden = hidden.unsqueeze(1) if hidden.dim() == 3 else hidden
    return hidden.expand(-1, heads, -1, -1).flatten(0, 1)


def from_huggingface(attention_mask: Tensor) -> Mask:
    """Return the mask of a tokenizer's `attention_mask` (batch, keys): 1 = real token, 0 = padding.

    Its lead axes are (batch,), as layers want it; for tensors (batch, heads, …) write `.add_head_axis()`.
    """
    if attention_mask.dim() != 2:
        raise wrong("attention_mask", describe(attention_mask), "shape (batch, keys)", "pass the tokenizer's own mask")
    return Table(attention_mask.bool()[:, None, :])


def to_huggingface(mask: Mask, keys: int, *, device: torch.device | str = "cpu") -> Int[Tensor, "batch key"]:
    """Return the `attention_mask` (batch, keys) of a mask that is the same for all queries."""
    table = _make_key_table(mask, keys, device, "; causality is the model's own")
    if any(size > 1 for size in table.shape[1:-1]):
        fix = "pass a mask of sequences alone, such as Lengths(lengths)"
        raise wrong("mask", f"lead axes {tuple(table.shape[:-1])}", "one axis, of sequences", fix)
    return table.reshape(-1, keys).long()


def from_valid_lengths(valid: Integer[Tensor, "..."], keys: int | None = None) -> Mask:
    """Return the mask of d2l's `valid_lens`: (batch,) for all queries, or (batch, queries) and the number of `keys`."""
    if valid.dim() < 2:
        return Lengths(valid)
    if keys is None:
        fix = "write from_valid_lengths(valid, keys=…)"
        raise wrong("keys", None, "the number of keys, because each query has its own length", fix)
    return Table(torch.arange(keys, device=valid.device) < valid[..., None])


def to_valid_lengths(mask: Mask, keys: int, *, device: torch.device | str = "cpu") -> Int[Tensor, "..."]:
    """Return how many keys are allowed; raise unless these are the first ones, for all queries."""
    table = _make_key_table(mask, keys, device)
    counts = table.sum(-1)
    if not torch.equal(table, torch.arange(keys, device=table.device) < counts[..., None]):
        fix = "use to_sdpa, which can write any mask"
        raise wrong("mask", type(mask).__name__, "allowed keys that come first, without gaps", fix)
    return counts


def _make_key_table(mask: Mask, keys: int, device: torch.device | str, advice: str = "") -> Bool[Tensor, "..."]:
    if not mask.columnwise:
        fix = f"pass a mask of keys alone, such as Lengths{advice}"
        raise wrong("mask", type(mask).__name__, "a mask that is the same for every query", fix)
    return mask.table(1, keys, device=device).squeeze(-2)
