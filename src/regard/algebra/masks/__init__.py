"""Masks say which pairs may attend. True = may attend, always."""

from regard.algebra.masks.base import Mask, Table, as_mask, differs_by_head, ensure_head_axis
from regard.algebra.masks.conversion import (
    from_huggingface,
    from_multihead,
    from_sdpa,
    from_valid_lengths,
    to_huggingface,
    to_multihead,
    to_sdpa,
    to_valid_lengths,
)
from regard.algebra.masks.patterns import Causal, CenteredWindow, Documents, Full, Lengths, Prefix, Window

__all__ = [
    "Causal",
    "CenteredWindow",
    "Documents",
    "Full",
    "Lengths",
    "Mask",
    "Prefix",
    "Table",
    "Window",
    "as_mask",
    "differs_by_head",
    "ensure_head_axis",
    "from_huggingface",
    "from_multihead",
    "from_sdpa",
    "from_valid_lengths",
    "to_huggingface",
    "to_multihead",
    "to_sdpa",
    "to_valid_lengths",
]
