"""Keep track of the absolute positions of the keys of each call of a site."""

import torch

from regard.algebra.shapes import Tensor


class KeyOffsets:
    """The position of the first key of the last call of each site, and of the next one if a cache announced it."""

    def __init__(self) -> None:
        self._expected: dict[str, tuple[int, int | None]] = {}
        self._last: dict[str, tuple[int, int | None, Tensor | None]] = {}

    def expect(self, name: str, keys: int, offset: int | None) -> None:
        """Take from a cache that the next call of the site will have `keys` keys, the first at position `offset`."""
        self._expected[name] = keys, offset

    def resolve_offset(self, name: str, keys: int, first: Tensor | None) -> int | None:
        """Return the position of the first key of a call; None if it is not known.

        Unless a cache has announced it, a first call begins at 0, and a later one where the call before it began, if
        the `first` key is still the same one or, if there is none to compare, no key is missing.
        """
        expected = self._expected.pop(name, None)
        last = self._last.get(name)
        if expected is not None and expected[0] == keys:
            offset = expected[1]
        elif last is None:
            offset = 0
        else:
            same = keys >= last[0] if first is None or last[2] is None else is_same_key(first, last[2])
            offset = last[1] if same else None
        self._last[name] = keys, offset, None if first is None else first.clone()
        return offset


def is_same_key(one: Tensor, other: Tensor) -> bool:
    """Return whether two keys are equal but for rounding: without a cache they are computed anew at another length."""
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-2, atol=1e-3)
