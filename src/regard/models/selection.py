"""Select and reorder the rows of any state, as beam search does at each step."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch

from regard.algebra.shapes import Int, Tensor, describe
from regard.errors import wrong_kind

Tree = TypeVar("Tree")


@runtime_checkable
class Selectable(Protocol):
    """A state that knows how its rows are reordered."""

    def select(self, index: Tensor) -> Any:
        """Return some rows, in any order, perhaps repeated."""


def select(state: Tree, index: Int[Tensor, " chosen"]) -> Tree:
    """Return the rows of a state at `index`, in that order, perhaps repeated.

    A state is a tensor with a row for each hypothesis, a number or None (the same for all rows), something with a
    `select` of its own, or a tuple, list, dict or dataclass of such.

    >>> select({"hidden": torch.tensor([[1.0], [2.0]]), "steps": 3}, torch.tensor([1, 1]))
    {'hidden': tensor([[2.],
            [2.]]), 'steps': 3}
    """
    selected: Tree = _select(state, index)
    return selected


def _select(state: Any, index: Tensor) -> Any:
    if isinstance(state, Tensor):
        return state.index_select(0, index)
    if state is None or isinstance(state, int | float | str):
        return state
    if isinstance(state, Selectable):
        return state.select(index)
    return _map_tree(state, lambda part: _select(part, index))


def _map_tree(tree: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(tree, tuple):
        parts = [function(part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    if isinstance(tree, list):
        return [function(part) for part in tree]
    if isinstance(tree, dict):
        return {name: function(part) for name, part in tree.items()}
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **{entry.name: function(getattr(tree, entry.name)) for entry in fields(tree)})
    expected = "a tree of tensors, numbers, tuples, lists, dicts and dataclasses"
    raise wrong_kind("state", describe(tree), expected, "give it a method select(index)")


class RowGroups(NamedTuple):
    """Rows in groups of `width` neighbors; `owners` are the sentences of the groups (None: all, as before)."""

    owners: Int[Tensor, " sentence"] | None
    width: int


def regroup(index: Int[Tensor, " row"], sentences: int, width: int) -> RowGroups:
    """Return the groups after a selection among rows that had groups of `width`, one for each sentence.

    If every sentence keeps its position and equally many rows, `owners` is None: nothing that they share has to move.
    Rows of a sentence that are not neighbors, or not equally many, become groups of one.

    >>> regroup(torch.tensor([1, 0, 3, 3]), 2, 2)
    RowGroups(owners=None, width=2)
    >>> regroup(torch.tensor([2, 3]), 2, 2)
    RowGroups(owners=tensor([1]), width=2)
    """
    own = index.div(width, rounding_mode="floor")
    if len(index) and len(index) % sentences == 0:
        each = len(index) // sentences
        if torch.equal(own, torch.arange(sentences, device=index.device).repeat_interleave(each)):
            return RowGroups(None, each)
    owners, counts = own.unique_consecutive(return_counts=True)
    if len(counts) and bool((counts == counts[0]).all()):
        return RowGroups(owners, int(counts[0]))
    return RowGroups(own, 1)


@dataclass(frozen=True, slots=True, eq=False)
class SharedState(Generic[Tree]):
    """State that the `width` hypotheses of a sentence share: one copy for all of them.

    `part` is a state with one row for each of the `sentences`. Selecting among the hypotheses of each sentence, as
    beam search does at every step, copies nothing.
    """

    part: Tree
    sentences: int
    width: int = 1

    def select(self, index: Int[Tensor, " row"]) -> "SharedState[Tree]":
        """Return the parts of the selected rows' sentences."""
        owners, width = regroup(index, self.sentences, self.width)
        if owners is None:
            return self if width == self.width else SharedState(self.part, self.sentences, width)
        return SharedState(select(self.part, owners), len(owners), width)

    def fold(self, rows: Tensor) -> Tensor:
        """Return `(row, …)` as `(sentence, hypothesis, …)`: the hypotheses of a sentence are its queries."""
        return rows.view(self.sentences, self.width, *rows.shape[1:])

    def expand(self, device: torch.device) -> Tree:
        """Return the part with one row for each hypothesis, copied if a sentence has several."""
        if self.width == 1:
            return self.part
        return select(self.part, torch.arange(self.sentences, device=device).repeat_interleave(self.width))
