"""Presets of speech recognizers, each with a way of training that works."""

from dataclasses import replace

from regard.models.config import AttentionConfig
from regard.tasks.speech.config import Listener, SpeechConfig, SpeechTraining, Speller
from regard.tasks.speech.sound_source import SoundConfig
from regard.training import configure_cosine_training
from regard.training.settings import require_steps

SPELLERS: dict[str, Speller] = {
    "location": Speller(attention=AttentionConfig(hidden=64, location=True)),
    "plain": Speller(attention=AttentionConfig(hidden=64)),
    "monotonic": Speller(attention=AttentionConfig(hidden=64, normalizer="monotonic")),
    "no-attention": Speller(decoder="plain"),
}


def configure_for_tones(speller: Speller, data: SoundConfig) -> SpeechConfig:
    """Return a configuration for generated tones: nothing to overfit to."""
    return SpeechConfig(
        data=data,
        speller=speller,
        learning=SpeechTraining(budget=2000),
        training=configure_cosine_training(4e-3, 50, epochs=12, target=0.5),
    )


def configure_for_recordings(speller: Speller, data: SoundConfig) -> SpeechConfig:
    """Return a configuration for voices: fewer than a model could learn by heart."""
    return SpeechConfig(
        data=data,
        listener=Listener(hidden=96, dropout=0.2),
        speller=replace(speller, attention=replace(speller.attention, hidden=128), dropout=0.2),
        learning=SpeechTraining(smoothing=0.05),
        training=require_steps(configure_cosine_training(2e-3, 200, epochs=50, decay=0.01, log=20), 800),
    )
