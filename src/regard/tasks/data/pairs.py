"""Parallel text: what every source of sentence pairs has in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from regard.tasks.data.fingerprints import digest


class SentencePair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


@runtime_checkable
class ParallelText(Protocol):
    """Pairs to learn from, and pairs that are never learned from."""

    @property
    def validation(self) -> Sequence[SentencePair]: ...

    @property
    def tests(self) -> Mapping[str, Sequence[SentencePair]]: ...

    @property
    def notes(self) -> Sequence[str]: ...

    def load_training(self, epoch: int) -> Sequence[SentencePair]: ...


@dataclass(frozen=True, slots=True)
class Corpus:
    """Pairs that were read from files: the same in every epoch.

    With `cut`, some part was cut from the training pairs: other lines or another rule may cut it elsewhere.
    """

    train: Sequence[SentencePair]
    validation: Sequence[SentencePair]
    tests: Mapping[str, Sequence[SentencePair]]
    notes: Sequence[str] = ()
    cut: bool = False

    def load_training(self, epoch: int) -> Sequence[SentencePair]:
        return self.train


def compute_fingerprint(text: ParallelText) -> str:
    """A short name for the text itself: another one means that a resumed run would not go on as it began."""
    sets = (text.load_training(0), text.validation)
    return digest("".join("\t".join(pair) + "\n" for pair in pairs).encode() + b"\n" for pairs in sets)
