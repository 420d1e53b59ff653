"""A recording: attentions by the name of their site, which can be labelled, compared, stacked and saved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Tensor
from regard.compute.notebook import NotebookDisplay
from regard.datasets.bounds import get_bound
from regard.errors import find_nearest, wrong, wrong_kind
from regard.inspect.recording.attention_map import AttentionMap, DenseMap
from regard.inspect.recording.difference import Difference
from regard.inspect.recording.sketch import Sketch

MAX_STACKED = 2**28  # weights that are stacked as a whole: a small file may claim keys that are far apart
SAME_SITES = "record the same model twice, or name the sites alike"
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class TokenLabels:
    """The tokens that stand beside the rows (`queries`) and above the columns (`keys`) of one attention."""

    queries: tuple[str, ...]
    keys: tuple[str, ...]

    def check(self, name: str, attention: AttentionMap) -> None:
        """Raise unless there is one label for every query and key, of text that can be written."""
        for axis, labels, size in (("queries", self.queries, attention.queries), ("keys", self.keys, attention.keys)):
            if len(labels) != size:
                raise wrong(f"{axis} of {name}", f"{len(labels)} labels", str(size), "give one for each position")
            if not is_encodable("".join(labels)):
                fix = "decode the text anew, with errors='replace'"
                raise wrong(f"{axis} of {name}", "half a surrogate pair", "text that can be written", fix)


class Recording(NotebookDisplay, Mapping[str, AttentionMap]):
    """Attentions by the name of their site, in the order in which they were computed.

    A name is the path of a module, with the number of the call behind `#` from the second call on. `labels` has the
    tokens of some or all of them, `metadata` whatever else is known, as JSON, and `notes` what was not kept.
    `offsets` has the absolute position of the first key if that is not 0, because a cache with a sliding window has
    dropped the ones before it; None is a position that is not known.

    >>> recording = Recording.from_weights(
    ...     {"alignment": [[0.9, 0.1], [0.2, 0.8]]}, queries=["le", "chat"], keys=["the", "cat"]
    ... )
    >>> recording["alignment"].top(1).keys.flatten().tolist()
    [0, 1]
    """

    def __init__(
        self,
        attentions: Mapping[str, AttentionMap] | None = None,
        *,
        labels: Mapping[str, TokenLabels] | None = None,
        metadata: Mapping[str, Json] | None = None,
        notes: Sequence[str] = (),
        offsets: Mapping[str, int | None] | None = None,
    ) -> None:
        self._attentions = dict(attentions or {})
        self._calls: dict[str, int] = {}
        self.labels: dict[str, TokenLabels] = {}
        self.metadata: dict[str, Json] = dict(metadata or {})
        self.notes: list[str] = list(notes)
        self.offsets: dict[str, int | None] = dict(offsets or {})
        for name, both in (labels or {}).items():
            both.check(name, self[name])
            self.labels[name] = both

    @classmethod
    def from_weights(
        cls,
        weights: Mapping[str, object],
        *,
        queries: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> "Recording":
        """Return a recording of weights (lists, arrays or tensors), each (queries, keys) or (heads, queries, keys)."""
        recording = cls({name: DenseMap(_to_tensor(name, table)) for name, table in weights.items()}, metadata=metadata)
        if queries is not None or keys is not None:
            recording.label(queries, keys)
        return recording

    def __getitem__(self, name: str) -> AttentionMap:
        if name not in self._attentions:
            known = f"'{find_nearest(name, self._attentions)}'" if self._attentions else "a model that attends"
            raise _MissingError(name, len(self._attentions), known)
        return self._attentions[name]

    def __contains__(self, name: object) -> bool:
        return name in self._attentions

    def __iter__(self) -> Iterator[str]:
        return iter(self._attentions)

    def __len__(self) -> int:
        return len(self._attentions)

    def __repr__(self) -> str:
        return f"<Recording of {len(self)} attentions>"

    @property
    def bytes(self) -> int:
        """The bytes of all its tensors."""
        return sum(attention.bytes for attention in self.values())

    def add(self, name: str, attention: AttentionMap, offset: int | None = 0) -> str:
        """Add an attention and return its name, with a number behind it if the name is taken.

        `offset` is the absolute position of its first key, None if that is not known.
        """
        number = self._calls.get(name, 0) + 1
        unique = name if number == 1 else f"{name}#{number}"
        while unique in self._attentions:  # a name that came from elsewhere with its number
            number += 1
            unique = f"{name}#{number}"
        self._attentions[unique], self._calls[name] = attention, number
        if offset != 0:
            self.offsets[unique] = offset
        return unique

    def label(
        self, queries: Sequence[str] | None = None, keys: Sequence[str] | None = None, *, sites: str = "*"
    ) -> None:
        """Label the sites that match with tokens; if `queries` or `keys` is missing, its positions are numbered."""
        for name in self.find_sites(sites):
            attention, first = self[name], self.offsets.get(name) or 0
            labels = TokenLabels(_make_labels(queries, attention.queries), _make_labels(keys, attention.keys, first))
            labels.check(name, attention)
            self.labels[name] = labels

    def find_sites(self, sites: str) -> list[str]:
        """Return the names that match a glob; the number of a call need not be written."""
        return [name for name in self if fnmatchcase(name, sites) or fnmatchcase(name.split("#")[0], sites)]

    def select(self, sites: str) -> "Recording":
        """Return a recording of the sites that match a glob."""
        names = self.find_sites(sites)
        labels = {name: self.labels[name] for name in names if name in self.labels}
        offsets = {name: self.offsets[name] for name in names if name in self.offsets}
        chosen = {name: self[name] for name in names}
        return Recording(chosen, labels=labels, metadata=self.metadata, notes=self.notes, offsets=offsets)

    def merge(self, other: "Recording") -> "Recording":
        """Return both in one; a name that both have gets a number, and this recording's metadata win."""
        metadata = {**other.metadata, **self.metadata}
        both = Recording(self, labels=self.labels, metadata=metadata, notes=self.notes, offsets=self.offsets)
        for name, attention in other.items():
            new_name = both.add(name, attention, other.offsets.get(name, 0))
            if name in other.labels:
                both.labels[new_name] = other.labels[name]
        both.notes += other.notes
        return both

    def compare(self, other: "Recording") -> "Recording":
        """Return the difference of `other` at each site that both have: two checkpoints or scores on one input."""
        shared = [name for name in self if name in other]
        if not shared:
            theirs, ours = (", ".join(sites) or "(none)" for sites in (other, self))
            raise wrong("other", f"sites {theirs}", f"some of {ours}", SAME_SITES)
        changes = {name: Difference(self[name], other[name]) for name in shared}
        labels = {name: pair for name, pair in {**other.labels, **self.labels}.items() if name in changes}
        alone = [name for name in (*self, *other) if name not in changes]
        notes = [f"{name} is in one of the two recordings only" for name in alone]
        moved = [name for name in shared if self.offsets.get(name, 0) != other.offsets.get(name, 0)]
        notes += [f"{name}: the keys of the two recordings have other positions" for name in moved]
        offsets = {name: None if name in moved else self.offsets[name] for name in shared if name in self.offsets}
        both = {"first": self.metadata, "second": other.metadata}
        return Recording(changes, labels=labels, metadata=both, notes=notes, offsets=offsets | dict.fromkeys(moved))

    def stack_calls(self) -> "Recording":
        """Return a recording with the calls of each site as one attention: the steps of a generation as its rows.

        Columns are absolute positions. A key that a step did not have, because it came later or because a sliding
        window had dropped it, has no weight in its row. Calls that differ in heads stay apart, and so do those whose
        positions are not known, with a note.
        """
        calls: dict[str, list[str]] = {}
        for name in self:
            calls.setdefault(name.split("#")[0], []).append(name)
        stacked = Recording(metadata=self.metadata, notes=self.notes)
        for site, names in calls.items():
            offsets = [self.offsets.get(name, 0) for name in names]
            known = [offset for offset in offsets if offset is not None]
            if len(known) == len(names) and len({self[name].heads for name in names}) == 1:
                stacked.add(site, *stack([self[name] for name in names], known))
                continue
            for name, offset in zip(names, offsets, strict=True):
                stacked.add(name, self[name], offset)
            if len(known) < len(names):
                stacked.notes.append(
                    f"{site}: its {len(names)} calls stay apart: the positions of their keys are not known"
                )
        return stacked

    def save(self, path: Path | str) -> None:
        """Write a file of numbers and text; nothing in it can run."""
        from regard.inspect.recording.file import write_recording

        write_recording(self, Path(path))

    @classmethod
    def load(cls, path: Path | str, *, limit: int = get_bound("recording", "bytes")) -> "Recording":
        """Read such a file, of at most `limit` bytes; raise an `InputError` if anything is wrong with it."""
        from regard.inspect.recording.file import read_recording

        return read_recording(Path(path), limit)


class _MissingError(KeyError):
    """No such site: a KeyError, because a recording is a mapping, that shows its message without quotes."""

    def __init__(self, name: str, sites: int, known: str) -> None:
        super().__init__(f"site: got '{name}', expected one of {sites} names; fix: try {known}")

    def __str__(self) -> str:
        return str(self.args[0])


def _to_tensor(name: str, table: object) -> Tensor:
    try:
        tensor = torch.as_tensor(table)
    except (TypeError, ValueError, RuntimeError) as error:
        raise wrong_kind(name, f"a {type(table).__name__}", "numbers in rows of one length", str(error)) from None
    tensor = tensor.detach().cpu()
    tensor = tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()
    return tensor[None] if tensor.dim() == 2 else tensor


def _make_labels(labels: Sequence[str] | None, size: int, first: int = 0) -> tuple[str, ...]:
    return tuple(str(number) for number in range(first, first + size)) if labels is None else tuple(labels)


def is_encodable(text: str) -> bool:
    """Return whether a text can be written as UTF-8: JSON may hold half a surrogate pair, which cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def stack(calls: Sequence[AttentionMap], offsets: Sequence[int]) -> tuple[AttentionMap, int]:
    """Return the rows of all calls, and the position of the first of their keys.

    `offsets` are the positions of the first key of each call. Keys that a call did not have get no weight in its rows.
    The result has all weights if every call has and they are not more than `MAX_STACKED`, else statistics.

    >>> steps = [DenseMap(torch.ones(1, 1, 1)), DenseMap(torch.tensor([[[0.5, 0.5]]]))]
    >>> stack(steps, [0, 0])[0].dense()
    tensor([[[1.0000, 0.0000],
             [0.5000, 0.5000]]])
    >>> stack(steps, [0, 1])[0].dense()
    tensor([[[1.0000, 0.0000, 0.0000],
             [0.0000, 0.5000, 0.5000]]])
    """
    first = min(offsets)
    if len(calls) == 1:
        return calls[0], first
    starts = [offset - first for offset in offsets]
    keys = max(start + call.keys for call, start in zip(calls, starts, strict=True))
    size = calls[0].heads * sum(call.queries for call in calls) * keys
    if size <= MAX_STACKED and all(isinstance(call, DenseMap) for call in calls):
        placed = zip(calls, starts, strict=True)
        tables = [F.pad(call.dense(), (start, keys - start - call.keys)) for call, start in placed]
        return DenseMap(torch.cat(tables, dim=1)), first
    k = min(_count_known(call) for call in calls)
    weights, columns = zip(*(call.top(k) for call in calls), strict=True)
    shifted = [column + start for column, start in zip(columns, starts, strict=True)]
    received = calls[0].received_weight().new_zeros(calls[0].heads, keys)
    for call, start in zip(calls, starts, strict=True):
        received[:, start : start + call.keys] += call.received_weight()
    entropies = torch.cat([call.entropy() for call in calls], dim=1)
    return Sketch(entropies, received, torch.cat(weights, 1), torch.cat(shifted, 1).int()), first


def _count_known(attention: AttentionMap) -> int:
    """Return how many of the largest weights of each query are known."""
    largest = attention.tensors().get("largest")
    return attention.keys if largest is None else largest.shape[-1]
