"""Sounds with what is said in them: what every source of them has in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from regard.algebra.shapes import Float, Tensor
from regard.tasks.data.fingerprints import digest
from regard.tasks.data.split_notes import describe_overlaps, describe_sizes


class Clip(NamedTuple):
    """A sound, what is said in it, and a name to speak of it by."""

    samples: Float[Tensor, " sample"]
    text: str
    name: str


@runtime_checkable
class Sounds(Protocol):
    """Clips to learn from, and clips that are never learned from."""

    @property
    def validation(self) -> Sequence[Clip]: ...

    @property
    def tests(self) -> Mapping[str, Sequence[Clip]]: ...

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def endless(self) -> bool: ...

    def load_training(self, epoch: int) -> Sequence[Clip]: ...


@dataclass(frozen=True)
class RecordedClips:
    """Clips that were read from files: the same in every epoch."""

    train: Sequence[Clip]
    validation: Sequence[Clip]
    tests: Mapping[str, Sequence[Clip]]
    notes: Sequence[str] = ()
    endless: bool = False
    cut: bool = False  # whether what is held out was chosen among them

    def load_training(self, epoch: int) -> Sequence[Clip]:
        return self.train


def describe_sounds(sounds: Sounds) -> list[str]:
    """How many clips each part has, and how many of those from files sound the same as one that is trained on."""
    learned, tests = sounds.load_training(0), sounds.tests
    counts = {name: len(clips) for name, clips in tests.items()}
    notes = [describe_sizes("clips", len(learned), len(sounds.validation), counts, endless=sounds.endless)]
    if not sounds.endless:
        held_out = {"validation": sounds.validation, **tests}
        notes += describe_overlaps(
            "clips", map(digest_clip, learned), {name: map(digest_clip, own) for name, own in held_out.items()}
        )
    return notes


def digest_clip(clip: Clip) -> str:
    return digest([clip.samples.numpy().tobytes()])


def compute_fingerprint(sounds: Sounds) -> str:
    """A short name for the sounds themselves: another one means that a resumed run would not go on as it began."""
    clips = (*sounds.load_training(0), *sounds.validation)
    return digest(f"{clip.text}\n".encode() + clip.samples.numpy().tobytes() for clip in clips)
