"""Whether the tensors and numbers of a call are still those that it was computed from."""

import itertools
from typing import NamedTuple

import torch

from regard.algebra.masks import Mask
from regard.errors import StaleError, format_message

Version = tuple[int, int, torch.dtype]  # which tensor it is, how often it was changed in place, and its dtype


class CallVersion(NamedTuple):
    """How often each tensor of a call has been changed in place, and the numbers that its parts hold."""

    tensors: list[tuple[str, Version]] | None  # None in inference mode, where torch does not count
    numbers: list[tuple[str, list[int | float]]]

    def compare(self, now: "CallVersion") -> None:
        """Raise if a tensor or a number of the call is no longer what it was."""
        numbers, tensors = (
            zip(self.numbers, now.numbers, strict=False),
            zip(self.tensors or (), now.tensors or (), strict=False),
        )
        for (name, known), (_, found) in itertools.chain(tensors, numbers):
            if known != found:
                expected, fix = "the call as it was", "ask before it is changed, or attend again"
                raise StaleError(format_message("weights", f"a {name} that was changed since", expected, fix))


def find_mask_numbers(mask: Mask) -> list[int | float]:
    """Return the numbers of masks that can be changed: those of this library cannot."""
    found = (value for leaf in mask.leaves() for value in getattr(leaf, "__dict__", {}).values())
    return [value for value in found if isinstance(value, int | float)]
