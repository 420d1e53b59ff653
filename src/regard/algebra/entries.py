"""How a part gets its names in the catalog, and what the parts of the catalog are built from."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import torch

from regard.algebra.foreign_keywords import explain_call

Class = TypeVar("Class", bound=type)


class Sizes(NamedTuple):
    """The sizes of the tensors that a part is built for."""

    query: int
    key: int
    value: int
    lead: tuple[int, ...] = ()
    queries: int = 1
    keys: int = 512
    projected: bool = False  # whether a layer projects queries and keys before it scores them

    @property
    def heads(self) -> int | None:
        """The last lead axis."""
        return self.lead[-1] if self.lead else None


def list_as(
    name: str, build: Callable[[Sizes], object] | None = None, *, write: str = "", aliases: str = ""
) -> Callable[[Class], Class]:
    """Give a class a name in the catalog: what `regard list` shows, `--score` takes and the contract tests run over.

    `build` makes one for given sizes; without it the class is called without arguments. `write` is how a user writes
    its constructor, with sizes in braces, if it has parameters or numbers that a name cannot tell. `aliases` are other
    names for it, separated by blanks: what papers, libraries and Chinese articles call it.
    """

    def add_entry(part: Class) -> Class:
        def build_plain(sizes: Sizes) -> object:
            return part()

        entry = CatalogBuilder(build or build_plain, write, tuple(aliases.split()))
        entries = vars(part).get("catalog_entries", {})
        setattr(part, "catalog_entries", {name: entry, **entries})  # noqa: B010
        if not entries:
            setattr(part, "__init__", explain_call(part.__init__, part))  # type: ignore[misc]  # noqa: B010
            if "forward" in vars(part) and any(kind.__name__ == "Score" for kind in part.__mro__):
                setattr(part, "forward", explain_call(part.forward, part))  # type: ignore[attr-defined]  # noqa: B010
        return part

    return add_entry


def list_learned(name: str, *start: float, aliases: str = "") -> Callable[[Class], Class]:
    """Give a class one more name: with its setting learned, one for each head, from `start` on or its usual value."""

    def add_entry(part: Class) -> Class:
        def build(sizes: Sizes) -> object:
            return part.learned(*start, heads=sizes.heads)  # type: ignore[attr-defined]

        return list_as(name, build, write=f"{part.__name__}.learned(heads={{heads}})", aliases=aliases)(part)

    return add_entry


class CatalogBuilder(NamedTuple):
    """How a part is built for given sizes, how a user writes its constructor, and what else it is called."""

    build: Callable[[Sizes], Any]
    write: str = ""
    aliases: tuple[str, ...] = ()

    def __call__(self, sizes: Sizes) -> Any:
        return self.build(sizes)

    def format_constructor(self, sizes: Sizes) -> str:
        """Return the constructor with these sizes filled in; empty if the name alone says all."""
        return self.write.format(**sizes._asdict(), heads=sizes.heads or 1)


def collect_entries(family: ModuleType) -> dict[str, CatalogBuilder]:
    """Return what `list_as` gave the public classes of a family, in the order in which it defines or imports them."""
    parts = [part for name, part in vars(family).items() if name in family.__all__]
    return {name: entry for part in parts for name, entry in vars(part).get("catalog_entries", {}).items()}


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
