"""Masks say which pairs may attend. True = may attend, always."""

from regard.algebra.masks.base import Mask, Table, as_mask, differs_by_head, place_heads
from regard.algebra.masks.convert import (
    from_huggingface,
    from_multihead,
    from_sdpa,
    from_valid_lengths,
    to_huggingface,
    to_multihead,
    to_sdpa,
    to_valid_lengths,
)
from regard.algebra.masks.kinds import Around, Causal, Documents, Full, Lengths, Prefix, Window

__all__ = [
    "Around",
    "Causal",
    "Documents",
    "Full",
    "Lengths",
    "Mask",
    "Prefix",
    "Table",
    "Window",
    "as_mask",
    "differs_by_head",
    "from_huggingface",
    "from_multihead",
    "from_sdpa",
    "from_valid_lengths",
    "place_heads",
    "to_huggingface",
    "to_multihead",
    "to_sdpa",
    "to_valid_lengths",
]
