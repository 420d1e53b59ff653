"""Spoken digits joined to sequences: the Free Spoken Digit Dataset, or any recordings named as its are."""

import io
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch

from regard.algebra.shapes import Float, Tensor
from regard.datasets.archives import open_archive, read_member
from regard.errors import wrong
from regard.tasks.data.dataset import FingerprintMixin
from regard.tasks.speech.clips import Clip
from regard.tasks.speech.features import stretch
from regard.tasks.speech.sound import decode_sound, read_sound

NAME = re.compile(r"(\d)_([^_/]+)_(\d+)\.wav")
TEST = range(5)  # the authors' test set: recordings 0 to 4 of each digit and speaker
VALIDATION = range(5, 8)  # ours, of their training set
GAP = 0.1  # seconds of silence between two digits, at most
TEMPO = 0.1  # part by which a recording is slowed down or sped up, in training


class DigitRecording(NamedTuple):
    """One digit by one speaker."""

    digit: str
    speaker: str
    take: int
    samples: Float[Tensor, " sample"]


class SpokenDigits(FingerprintMixin):
    """Digits of one speaker in a row; held-out recordings are never trained on, alone or in a row.

    Without `left_out`, the test set is the authors' (recordings 0 to 4). With it, all recordings of that speaker are
    the test set, and the speaker is not trained on.
    """

    notes: Sequence[str]
    endless = True
    cut = False

    def __init__(self, recordings: Sequence[DigitRecording], *, rate: int, join: int, left_out: str, seed: int) -> None:
        if join < 1:
            raise wrong("join", join, "at least 1 digit in a row", "use 4")
        speakers = sorted({recording.speaker for recording in recordings})
        if left_out and left_out not in speakers:
            raise wrong("left_out", left_out, f"one of {', '.join(speakers)}", f"write --left-out {speakers[0]}")
        self.rate, self.join, self.seed = rate, join, seed
        kept = [one for one in recordings if one.speaker != left_out]
        counts = {
            "training": [one for one in kept if one.take not in TEST and one.take not in VALIDATION],
            "validation": [one for one in kept if one.take in VALIDATION],
            "test": [one for one in recordings if (one.speaker == left_out if left_out else one.take in TEST)],
        }
        self.training_recordings, self.validation_recordings, self.test_recordings = counts.values()
        self.notes = (", ".join(f"{len(part)} for {name}" for name, part in counts.items()) + " of the recordings",)
        for name, part in counts.items():
            if not part:
                fix = "give recordings named DIGIT_SPEAKER_INDEX.wav, with indices from 0 to 8 and more"
                raise wrong("data", f"no recordings for {name}", "some of each", fix)

    def load_training(self, epoch: int) -> Sequence[Clip]:
        """Return every recording once, in rows and tempos that are new in every epoch."""
        random = Random(f"{self.seed} train {epoch}")
        return list(self.draw_rows(self.training_recordings, random, tempo=TEMPO))

    @cached_property
    def validation(self) -> Sequence[Clip]:
        return list(self.draw_rows(self.validation_recordings, Random("validation")))

    @cached_property
    def tests(self) -> Mapping[str, Sequence[Clip]]:
        """Each recording alone, and in a row with others: the same rows whatever the seed."""
        alone = [Clip(one.samples, one.digit, f"{one.digit}_{one.speaker}_{one.take}") for one in self.test_recordings]
        return {"alone": alone, "joined": list(self.draw_rows(self.test_recordings, Random("test")))}

    def draw_rows(self, recordings: Sequence[DigitRecording], random: Random, tempo: float = 0.0) -> Iterator[Clip]:
        """Yield rows of recordings of one speaker each."""
        by_speaker = defaultdict(list)
        for recording in recordings:
            by_speaker[recording.speaker].append(recording)
        for speaker, own in sorted(by_speaker.items()):
            random.shuffle(own)
            while own:
                row = [own.pop() for _ in range(min(len(own), random.randint(1, self.join)))]
                samples = join_recordings([change_tempo(one.samples, tempo, random) for one in row], self.rate, random)
                yield Clip(samples, "".join(one.digit for one in row), f"{speaker} {len(own)}")


def change_tempo(samples: Float[Tensor, " sample"], most: float, random: Random) -> Float[Tensor, " stretch"]:
    """Return a sound slower or faster by up to this share, with the pitch that follows from it."""
    if not most:
        return samples
    return stretch(samples, len(samples), round(len(samples) * random.uniform(1 - most, 1 + most)))


def join_recordings(parts: Sequence[Tensor], rate: int, random: Random) -> Float[Tensor, " sample"]:
    """Return sounds one after another, each as loud as the others, with silence between."""
    joined: list[Tensor] = []
    for part in parts:
        joined.append(torch.zeros(round(random.uniform(0, GAP) * rate)))
        joined.append(part / part.abs().max())
    return torch.cat(joined)


def holds_digits(place: Path) -> bool:
    """Return whether a folder or archive has recordings that are named as those of the data set."""
    return find_archive(place) is not None or bool(find_recordings(place))


def read_digits(place: Path, rate: int) -> list[DigitRecording]:
    """Read all recordings of a folder, of its `recordings` folder, or of a zip file, in the order of their names."""
    archive = find_archive(place)
    if archive is None:
        return [parse_recording(path.name, read_sound(path, rate).samples) for path in find_recordings(place)]
    with open_archive(archive) as packed:
        names = sorted(name for name in packed.namelist() if NAME.fullmatch(Path(name).name))
        sounds = ((name, io.BytesIO(read_member(packed, name, archive))) for name in names)
        return [parse_recording(Path(name).name, decode_sound(sound, name, rate).samples) for name, sound in sounds]


def find_archive(place: Path) -> Path | None:
    """Return the path itself if it is a zip file, or the zip file in a folder, or none."""
    candidates = (place, place / "recordings.zip")
    return next((path for path in candidates if path.suffix == ".zip" and path.is_file()), None)


def find_recordings(place: Path) -> list[Path]:
    """Return the files of a folder, or of its `recordings` folder, that are named as a recording."""
    for folder in (place, place / "recordings"):
        found = sorted(path for path in folder.glob("*.wav") if NAME.fullmatch(path.name))
        if found:
            return found
    return []


def parse_recording(name: str, samples: Float[Tensor, " sample"]) -> DigitRecording:
    """Return a recording with what its file name says of it.

    >>> parse_recording("7_jackson_32.wav", torch.ones(3))[:3]
    ('7', 'jackson', 32)
    """
    found = NAME.fullmatch(name)
    if found is None:
        raise wrong("recording", name, "DIGIT_SPEAKER_INDEX.wav", "rename it, as in 7_jackson_32.wav")
    digit, speaker, index = found.groups()
    return DigitRecording(digit, speaker, int(index), samples)
