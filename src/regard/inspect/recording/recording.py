"""What was looked at, by name: kept, labelled, compared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import torch

from regard.algebra.shapes import Tensor
from regard.datasets.bounds import get_bound
from regard.errors import find_nearest, wrong, wrong_kind
from regard.inspect.recording.attention_map import AttentionMap, DenseMap
from regard.inspect.recording.difference import Difference
from regard.inspect.recording.stack import stack

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class TokenLabels:
    """The tokens that stand beside the rows (`queries`) and above the columns (`keys`) of one attention."""

    queries: tuple[str, ...]
    keys: tuple[str, ...]

    def check(self, name: str, attention: AttentionMap) -> None:
        """Raise unless there is one for every query and key."""
        for axis, labels, size in (("queries", self.queries, attention.queries), ("keys", self.keys, attention.keys)):
            if len(labels) != size:
                raise wrong(f"{axis} of {name}", f"{len(labels)} labels", str(size), "give one for each position")
            try:
                "".join(labels).encode("utf-8")
            except UnicodeEncodeError:
                fix = "decode the text anew, with errors='replace'"
                raise wrong(f"{axis} of {name}", "half a surrogate pair", "text that can be written", fix) from None


class Recording(Mapping[str, AttentionMap]):
    """Attentions by the name of their site, in the order in which they were seen.

    A name is the path of a module, with the number of the call behind `#` from the second call on. `labels` has the
    tokens of some or all of them, `metadata` whatever else is known, as JSON, and `notes` what was not kept.
    `offsets` has the absolute position of the first key where that is not 0: a cache with a sliding window has dropped
    the ones before it. None is a position that is not known.

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
        self._seen = dict(attentions or {})
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
        """From written weights (lists, arrays or tensors), each (queries, keys) or (heads, queries, keys)."""
        recording = cls({name: DenseMap(_to_tensor(name, table)) for name, table in weights.items()}, metadata=metadata)
        if queries is not None or keys is not None:
            recording.label(queries, keys)
        return recording

    def __getitem__(self, name: str) -> AttentionMap:
        if name not in self._seen:
            known = f"'{find_nearest(name, self._seen)}'" if self._seen else "a model that attends"
            raise _MissingError(name, len(self._seen), known)
        return self._seen[name]

    def __contains__(self, name: object) -> bool:
        return name in self._seen

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def __repr__(self) -> str:
        return f"<Recording of {len(self)} attentions>"

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return sum(seen.bytes for seen in self.values())

    def add(self, name: str, attention: AttentionMap, offset: int | None = 0) -> str:
        """Keep one more, and give the name it is kept by: with a number where there was one already.

        `offset` is the absolute position of its first key, None if that is not known.
        """
        number = self._calls.get(name, 0) + 1
        unique = name if number == 1 else f"{name}#{number}"
        while unique in self._seen:  # a name that came from elsewhere with its number
            number += 1
            unique = f"{name}#{number}"
        self._seen[unique], self._calls[name] = attention, number
        if offset != 0:
            self.offsets[unique] = offset
        return unique

    def label(
        self, queries: Sequence[str] | None = None, keys: Sequence[str] | None = None, *, sites: str = "*"
    ) -> None:
        """Give tokens to the sites that match; where one of the two is missing, its positions are numbered."""
        for name in self.find_sites(sites):
            seen = self[name]
            both = TokenLabels(
                _make_labels(queries, seen.queries), _make_labels(keys, seen.keys, self.offsets.get(name) or 0)
            )
            both.check(name, seen)
            self.labels[name] = both

    def find_sites(self, sites: str) -> list[str]:
        """The names that match a glob; the number of a call need not be written."""
        return [name for name in self if fnmatchcase(name, sites) or fnmatchcase(name.split("#")[0], sites)]

    def select(self, sites: str) -> "Recording":
        """Those that match a glob."""
        names = self.find_sites(sites)
        labels = {name: self.labels[name] for name in names if name in self.labels}
        offsets = {name: self.offsets[name] for name in names if name in self.offsets}
        seen = {name: self[name] for name in names}
        return Recording(seen, labels=labels, metadata=self.metadata, notes=self.notes, offsets=offsets)

    def merge(self, other: "Recording") -> "Recording":
        """Both, one after the other; a name that both have gets a number, and this one's metadata count first."""
        metadata = {**other.metadata, **self.metadata}
        both = Recording(self, labels=self.labels, metadata=metadata, notes=self.notes, offsets=self.offsets)
        for name, seen in other.items():
            kept = both.add(name, seen, other.offsets.get(name, 0))
            if name in other.labels:
                both.labels[kept] = other.labels[name]
        both.notes += other.notes
        return both

    def compare(self, other: "Recording") -> "Recording":
        """How the other differs, at each site that both have: two checkpoints or two scores on the same input."""
        shared = [name for name in self if name in other]
        if not shared:
            raise wrong(
                "other", f"sites {', '.join(other) or '(none)'}", f"some of {', '.join(self) or '(none)'}", SAME_SITES
            )
        seen = {name: Difference(self[name], other[name]) for name in shared}
        labels = {name: pair for name, pair in {**other.labels, **self.labels}.items() if name in seen}
        alone = [name for name in (*self, *other) if name not in seen]
        notes = [f"{name} is in one of the two recordings only" for name in alone]
        moved = [name for name in shared if self.offsets.get(name, 0) != other.offsets.get(name, 0)]
        notes += [f"{name}: the keys of the two recordings have other positions" for name in moved]
        offsets = {name: None if name in moved else self.offsets[name] for name in shared if name in self.offsets}
        both = {"first": self.metadata, "second": other.metadata}
        return Recording(seen, labels=labels, metadata=both, notes=notes, offsets=offsets | dict.fromkeys(moved))

    def stack_calls(self) -> "Recording":
        """The calls of each site as one attention, the later below the earlier: the steps of a generation.

        A key that a step did not have, because it came later or because a sliding window had left it behind, got no
        weight from it: columns are absolute positions. Sites whose calls differ in heads stay apart, and so do those
        whose positions are not known, with a note.
        """
        calls: dict[str, list[str]] = {}
        for name in self:
            calls.setdefault(name.split("#")[0], []).append(name)
        made = Recording(metadata=self.metadata, notes=self.notes)
        for site, names in calls.items():
            offsets = [self.offsets.get(name, 0) for name in names]
            known = [offset for offset in offsets if offset is not None]
            if len(known) == len(names) and len({self[name].heads for name in names}) == 1:
                made.add(site, *stack([self[name] for name in names], known))
                continue
            for name, offset in zip(names, offsets, strict=True):
                made.add(name, self[name], offset)
            if len(known) < len(names):
                made.notes.append(
                    f"{site}: its {len(names)} calls stay apart: the positions of their keys are not known"
                )
        return made

    def save(self, path: Path | str) -> None:
        """Write all of it to one file that holds numbers and text and nothing that runs."""
        from regard.inspect.recording.file import write_recording

        write_recording(self, Path(path))

    @classmethod
    def load(cls, path: Path | str, *, limit: int = get_bound("recording", "bytes")) -> "Recording":
        """Read such a file, of at most `limit` bytes. Whatever is wrong with it is said in one sentence."""
        from regard.inspect.recording.file import read_recording

        return read_recording(Path(path), limit)


SAME_SITES = "record the same model twice, or name the sites alike"


class _MissingError(KeyError):
    """No such site; a KeyError, because a recording is a mapping, with the sentence as its text."""

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
