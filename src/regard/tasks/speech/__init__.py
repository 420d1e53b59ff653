"""Speech: listen, attend and spell, from sounds to their transcripts."""

from pathlib import Path
from typing import Any, cast

from regard.models import EncoderDecoder
from regard.tasks.data.vocabularies import build_vocabulary, load_vocabulary
from regard.tasks.definition import TaskDefinition
from regard.tasks.prediction import load_model
from regard.tasks.speech.clips import Sounds
from regard.tasks.speech.config import SpeechConfig
from regard.tasks.speech.model import build_speech_model
from regard.tasks.speech.predictor import SpeechPredictor
from regard.tasks.speech.presets import SPELLERS, configure_for_recordings, configure_for_tones
from regard.tasks.speech.sound_source import TONES, SoundConfig, open_sounds
from regard.tasks.speech.task import VOCABULARY, SpeechTask


class SpeechDefinition(TaskDefinition[SpeechConfig]):
    """Write down what is said."""

    presets = SPELLERS
    data_help = """SOUNDS is tones (generated, endless), a folder of sound files with transcripts.tsv or a text file
beside each, or a folder or zip file of spoken digits named DIGIT_SPEAKER_INDEX.wav (the Free Spoken Digit Dataset)."""
    data_field = data_noun = "sounds"

    def build_preset(self, name: str, data: SoundConfig) -> SpeechConfig:
        return (configure_for_tones if data.sounds == TONES else configure_for_recordings)(SPELLERS[name], data)

    def open_data(self, config: SpeechConfig) -> Sounds:
        return open_sounds(config.data, config.features.rate)

    def assemble_task(self, config: SpeechConfig, data: Sounds, run: Path | None) -> SpeechTask:
        if run is not None:
            return SpeechTask(config, data, load_vocabulary(run, VOCABULARY))
        texts = [clip.text for clip in data.load_training(0)]
        return SpeechTask(config, data, build_vocabulary(texts, config.vocabulary))

    def load(self, config: SpeechConfig, run: Path, weights: Path | None = None) -> SpeechPredictor:
        vocabulary = load_vocabulary(run, VOCABULARY)
        model = load_model(lambda: build_speech_model(config, symbols=len(vocabulary)), config.training, run, weights)
        return SpeechPredictor(config, vocabulary, cast(EncoderDecoder[Any], model), run)


__all__ = ["SpeechConfig", "SpeechDefinition", "SpeechPredictor", "SpeechTask"]
