"""Sounds by name: what a command line or a configuration says."""

from dataclasses import dataclass
from pathlib import Path

from regard.tasks.data.text_files import locate_data
from regard.tasks.speech.clips import Sounds
from regard.tasks.speech.folder import read_folder
from regard.tasks.speech.spoken_digits import SpokenDigits, holds_digits, read_digits
from regard.tasks.speech.tones import Tones

TONES = "tones"


@dataclass(frozen=True, slots=True)
class SoundConfig:
    """Which sounds to learn from."""

    sounds: str = TONES  # tones (generated), a folder of sound files and transcripts, or of spoken digits (FSDD)
    size: int = 400  # clips in an epoch of generated sound
    held_out: int = 100  # clips for validation and test each, of generated sound
    seed: int = 1  # of what is generated or put in a row
    join: int = 4  # spoken digits in a row, at most
    left_out: str = ""  # a speaker of the digits to be tested on and not trained on


def open_sounds(config: SoundConfig, rate: int) -> Sounds:
    """Return the sounds that a configuration names."""
    if config.sounds == TONES:
        return Tones(rate, size=config.size, held_out=config.held_out, seed=config.seed)
    place = locate_data(Path(config.sounds))
    if holds_digits(place):
        recordings = read_digits(place, rate)
        return SpokenDigits(recordings, rate=rate, join=config.join, left_out=config.left_out, seed=config.seed)
    return read_folder(place, rate)
