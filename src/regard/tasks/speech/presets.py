"""Ways to attend to sound, by name, each with a way of training that works."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.models.config import AttentionConfig
from regard.tasks.configuration import apply_changes, choose_preset, resolve_data, set_run_folder
from regard.tasks.speech.config import Listener, SpeechConfig, SpeechTraining, Speller
from regard.tasks.speech.sound_source import TONES, SoundConfig
from regard.training import Intervals, Optimizer, Schedule, StopCriteria, Training

# How the speller looks at what the listener heard.
ATTENTIONS: dict[str, AttentionConfig] = {
    "location": AttentionConfig(hidden=64, location=True),
    "plain": AttentionConfig(hidden=64),
    "monotonic": AttentionConfig(hidden=64, normalizer="monotonic"),
}
SPELLERS: dict[str, Speller] = {name: Speller(attention=reading) for name, reading in ATTENTIONS.items()} | {
    "no-attention": Speller(decoder="plain")
}
DATA = """SOUNDS is tones (generated, endless), a folder of sound files with transcripts.tsv or a text file beside each,
or a folder or zip file of spoken digits named DIGIT_SPEAKER_INDEX.wav (the Free Spoken Digit Dataset)."""


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> SpeechConfig:
    """The preset for these sounds, with other values for some fields.

    >>> configure("monotonic", (), {}).speller.attention.normalizer
    'monotonic'
    """
    name = preset or next(iter(SPELLERS))
    source, values = resolve_data(SpeechConfig(), "data.sounds", data, values)
    made = (configure_for_tones if source == TONES else configure_for_recordings)(
        choose_preset(SPELLERS, name), SoundConfig(source)
    )
    return apply_changes(set_run_folder(made, source, name), values)


def configure_for_tones(speller: Speller, data: SoundConfig) -> SpeechConfig:
    """Clean sound without end: nothing to overfit to."""
    return SpeechConfig(
        data=data,
        speller=speller,
        learning=SpeechTraining(budget=2000),
        training=Training(
            optimizer=Optimizer(rate=4e-3, decay=0.0),
            schedule=Schedule("cosine", warmup=50),
            stop=StopCriteria(epochs=12, target=0.5),
        ),
    )


def configure_for_recordings(speller: Speller, data: SoundConfig) -> SpeechConfig:
    """Voices: fewer of them than a model could learn by heart."""
    reading = replace(speller.attention, hidden=128)
    return SpeechConfig(
        data=data,
        listener=Listener(hidden=96, dropout=0.2),
        speller=replace(speller, attention=reading, dropout=0.2),
        learning=SpeechTraining(smoothing=0.05),
        training=Training(
            optimizer=Optimizer(rate=2e-3),
            schedule=Schedule("cosine", warmup=200),
            stop=StopCriteria(epochs=50),
            every=Intervals(log=20),
        ),
    )
