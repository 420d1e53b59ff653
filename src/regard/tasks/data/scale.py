"""Changes of units: those of a file to numbers of about 1, and back."""

from typing import Any, NamedTuple


class Scale(NamedTuple):
    """A change of units for arrays or tensors, a number or a row of them for each column."""

    center: Any
    spread: Any

    def normalize(self, values: Any) -> Any:
        """Return values of the file's units in units of about 1."""
        return (values - self.center) / self.spread

    def denormalize(self, values: Any) -> Any:
        """Return values of units of about 1 in the file's units."""
        return values * self.spread + self.center
