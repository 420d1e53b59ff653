"""How a part gets its names in the catalog, and what the parts of the catalog are built from."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import torch

Class = TypeVar("Class", bound=type)


class Sizes(NamedTuple):
    """The sizes of the tensors that a part is built for."""

    query: int
    key: int
    value: int
    lead: tuple[int, ...] = ()
    queries: int = 1
    keys: int = 512

    @property
    def heads(self) -> int | None:
        """The last lead axis."""
        return self.lead[-1] if self.lead else None


def list_as(name: str, build: Callable[[Sizes], object] | None = None) -> Callable[[Class], Class]:
    """Give a class a name in the catalog: what `regard list` shows, `--score` takes and the contract tests run over.

    `build` makes one for given sizes; without it the class is called without arguments.
    """

    def add_entry(part: Class) -> Class:
        def build_plain(sizes: Sizes) -> object:
            return part()

        entries = vars(part).get("catalog_entries", {})
        setattr(part, "catalog_entries", {name: build or build_plain, **entries})  # noqa: B010
        return part

    return add_entry


def collect_entries(family: ModuleType) -> dict[str, Callable[[Sizes], Any]]:
    """Return what `list_as` gave the public classes of a family, in the order in which it defines or imports them."""
    parts = [part for name, part in vars(family).items() if name in family.__all__]
    return {name: build for part in parts for name, build in vars(part).get("catalog_entries", {}).items()}


def make_lengths(sizes: Sizes) -> torch.Tensor:
    """Return lengths from all keys down to none over the first lead axis: some padding, and one empty sequence."""
    count = sizes.lead[0] if sizes.lead else 1
    lengths = torch.linspace(sizes.keys, 0, count + 1).long()[1:] if count > 1 else torch.tensor([sizes.keys // 2])
    return lengths.view(-1, *(1 for _ in sizes.lead[1:])) if sizes.lead else lengths[0]


def make_thirds(count: int) -> torch.Tensor:
    """Return the number of the document, of three, that each of `count` positions belongs to."""
    return torch.arange(count) * 3 // count


def make_checkerboard(sizes: Sizes) -> torch.Tensor:
    """Return a table of every second pair, with an empty first row."""
    table = (torch.arange(sizes.queries)[:, None] + torch.arange(sizes.keys)) % 2 == 0
    table[0] = False
    return table
