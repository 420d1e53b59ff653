"""Data sets: items to train on, and held-out items that are never trained on."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from regard.tasks.data.fingerprints import check_held_out, digest
from regard.tasks.data.split_notes import describe_overlaps, describe_sizes


@runtime_checkable
class DatasetItem(Protocol):
    """A sentence pair, a sound, a question: anything with a content."""

    def to_bytes(self) -> bytes: ...


Item = TypeVar("Item", bound=DatasetItem)
Item_co = TypeVar("Item_co", bound=DatasetItem, covariant=True)


@runtime_checkable
class Dataset(Protocol[Item_co]):
    """Items of one kind.

    `endless` data are generated: every epoch has new items. With `cut`, held-out items were chosen among those of a
    file, so that other lines or another rule may choose others.
    """

    @property
    def validation(self) -> Sequence[Item_co]: ...

    @property
    def tests(self) -> Mapping[str, Sequence[Item_co]]: ...

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def endless(self) -> bool: ...

    @property
    def cut(self) -> bool: ...

    def load_training(self, epoch: int) -> Sequence[Item_co]: ...


def compute_fingerprint(dataset: Dataset[Any]) -> str:
    """Return a hash of the training items of the first epoch and of the validation items."""
    return digest(item.to_bytes() for item in (*dataset.load_training(0), *dataset.validation))


class FingerprintMixin:
    """Adds a fingerprint to a data set."""

    @property
    def fingerprint(self) -> str:
        """A hash of the content: with another one, a resumed run would not go on as it began."""
        return compute_fingerprint(cast(Dataset[Any], self))


@dataclass(frozen=True)
class FixedDataset(FingerprintMixin, Generic[Item]):
    """Items that were read from files: the same in every epoch."""

    train: Sequence[Item]
    validation: Sequence[Item]
    tests: Mapping[str, Sequence[Item]]
    notes: Sequence[str] = ()
    cut: bool = False
    endless: bool = False

    def load_training(self, epoch: int) -> Sequence[Item]:
        """Return all items, whatever the epoch."""
        return self.train


def select_held_out(
    dataset: Dataset[Item], split: str, noun: str, run: Path | None = None
) -> Mapping[str, Sequence[Item]]:
    """Return the test sets, or the validation set; if a run cut them off its data, they must still be the same."""
    if run is not None and dataset.cut:
        check_held_out(noun, cast(FingerprintMixin, dataset).fingerprint, run)
    return dataset.tests if split == "test" else {"validation": dataset.validation}


def describe_dataset(
    dataset: Dataset[Item],
    noun: str,
    key_noun: str = "",
    collect_keys: Callable[[Sequence[Item]], Iterable[Hashable]] | None = None,
) -> list[str]:
    """Return notes: the sizes of the splits, keys that two splits of files share, and the notes of the data set."""
    training, held_out = dataset.load_training(0), {"validation": dataset.validation, **dataset.tests}
    sizes = {name: len(items) for name, items in held_out.items()}
    notes = [describe_sizes(noun, len(training), sizes.pop("validation"), sizes, endless=dataset.endless)]
    if collect_keys and not dataset.endless:
        keys = {name: collect_keys(items) for name, items in held_out.items()}
        notes += describe_overlaps(key_noun or noun, collect_keys(training), keys)
    return [*notes, *dataset.notes]
