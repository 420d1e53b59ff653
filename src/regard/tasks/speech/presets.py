"""Ways to attend to sound, by name, each with a way of training that works."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.models.config import Reading
from regard.tasks.naming import changed, chosen, in_folder, of_data
from regard.tasks.speech.config import Learning, Listener, SpeechConfig, Speller
from regard.tasks.speech.opening import TONES, SoundConfig
from regard.training import Every, Optimizer, Schedule, Stop, Training

# How the speller looks at what the listener heard.
READINGS: dict[str, Reading] = {
    "location": Reading(hidden=64, location=True),
    "plain": Reading(hidden=64),
    "monotonic": Reading(hidden=64, normalizer="monotonic"),
}
SPELLERS: dict[str, Speller] = {name: Speller(reading=reading) for name, reading in READINGS.items()} | {
    "no-attention": Speller(decoder="plain")
}
DATA = """SOUNDS is tones (generated, endless), a folder of sound files with transcripts.tsv or a text file beside each,
or a folder or zip file of spoken digits named DIGIT_SPEAKER_INDEX.wav (the Free Spoken Digit Dataset)."""


def configured(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> SpeechConfig:
    """The preset for these sounds, with other values for some fields.

    >>> configured("monotonic", (), {}).speller.reading.normalizer
    'monotonic'
    """
    name = preset or next(iter(SPELLERS))
    source, values = of_data(SpeechConfig(), "data.sounds", data, values)
    made = (for_tones if source == TONES else for_people)(chosen(SPELLERS, name), SoundConfig(source))
    return changed(in_folder(made, source, name), values)


def for_tones(speller: Speller, data: SoundConfig) -> SpeechConfig:
    """Clean sound without end: nothing to overfit to."""
    return SpeechConfig(
        data=data,
        speller=speller,
        learning=Learning(budget=2000),
        training=Training(
            optimizer=Optimizer(rate=4e-3, decay=0.0),
            schedule=Schedule("cosine", warmup=50),
            stop=Stop(epochs=12, target=0.5),
        ),
    )


def for_people(speller: Speller, data: SoundConfig) -> SpeechConfig:
    """Voices: fewer of them than a model could learn by heart."""
    reading = replace(speller.reading, hidden=128)
    return SpeechConfig(
        data=data,
        listener=Listener(hidden=96, dropout=0.2),
        speller=replace(speller, reading=reading, dropout=0.2),
        learning=Learning(smoothing=0.05),
        training=Training(
            optimizer=Optimizer(rate=2e-3),
            schedule=Schedule("cosine", warmup=200),
            stop=Stop(epochs=50),
            every=Every(log=20),
        ),
    )
