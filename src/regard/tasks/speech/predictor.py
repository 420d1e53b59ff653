"""Predictions of a trained speech recognizer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from regard.errors import wrong
from regard.inspect.draw.chapters import Spectrogram
from regard.inspect.draw.words import Language
from regard.models import EncoderDecoder, EncoderOutput
from regard.tasks.data import Vocabulary
from regard.tasks.data.dataset import select_held_out
from regard.tasks.data.held_out import is_same_source
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction, no_attention_error
from regard.tasks.recorded_attention import record_source_attention
from regard.tasks.speech.clips import Clip
from regard.tasks.speech.config import SpeechConfig
from regard.tasks.speech.encoded_clips import Frames, describe_skipped
from regard.tasks.speech.features import log_mel
from regard.tasks.speech.metrics import compute_metrics, sum_errors
from regard.tasks.speech.sound import read_sound
from regard.tasks.speech.sound_source import open_sounds
from regard.tasks.speech.task import SpeechTask
from regard.tasks.speech.transcripts import SpeechSearchOptions, Transcript, transcribe

TITLE = "attention of each symbol over the sound, in seconds"


class SpeechPredictor:
    """Evaluates a speech recognizer, and transcribes one file."""

    def __init__(
        self, config: SpeechConfig, vocabulary: Vocabulary, model: EncoderDecoder[Any], run: Path | None = None
    ) -> None:
        self.config, self.vocabulary, self.model, self.run = config, vocabulary, model, run

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        return {name: self.evaluate_clips(clips) for name, clips in self.load_sets(data, split).items()}

    def load_sets(self, data: str | None, split: HeldOutSplit) -> Mapping[str, Sequence[Clip]]:
        """Return the clips to evaluate on, by the names of their sets."""
        own = self.config.data
        is_own = is_same_source(data, own.sounds)
        sounds = open_sounds(own if data is None else replace(own, sounds=data), self.config.features.rate)
        if is_own or sounds.endless or not sounds.cut:
            return select_held_out(sounds, split, "sounds", self.run if is_own else None)
        # Nothing of another folder was trained on: all of it is measured, unless it says itself what is for tests.
        parts = (sounds.load_training(0), sounds.validation, *sounds.tests.values())
        return {Path(str(data)).name: [clip for part in parts for clip in part]}

    def evaluate_clips(self, clips: Sequence[Clip]) -> EvaluationReport:
        """Return error rates of symbols and words, and the share of right clips. Too long clips are all errors."""
        features, limit = self.config.features, self.config.learning.limit
        short = [number for number, clip in enumerate(clips) if features.count_frames(len(clip.samples)) <= limit]
        transcripts = self.transcribe_frames([self.compute_frames(clips[number].samples) for number in short])
        texts = [""] * len(clips)
        for number, transcript in zip(short, transcripts, strict=True):
            texts[number] = transcript.text
        metrics = compute_metrics(sum_errors(texts, [clip.text for clip in clips]))
        return EvaluationReport(len(clips), metrics, [SpeechTask.units, *describe_skipped(clips, features, limit)])

    def predict(self, words: Sequence[str]) -> Prediction:
        """Transcribe a sound file; the first clip that was held out, if none is named."""
        if len(words) > 1:
            raise wrong("sound", f"{len(words)} names", "one sound file", "name one at a time")
        if words:
            samples, notes = read_sound(Path(words[0]), self.config.features.rate)
            return self.predict_sound(samples, words[0], notes)
        clip = next(iter(self.load_sets(None, "test").values()))[0]
        return self.predict_sound(clip.samples, clip.name, ())

    def predict_sound(self, samples: torch.Tensor, name: str, notes: Sequence[str]) -> Prediction:
        """Transcribe a sound; `notes` say what was done to read it."""
        frames = self.compute_frames(samples)
        found = self.transcribe_frames([frames], attention=True)[0]
        values = {"sound": name, "text": found.text, "tokens": found.tokens, "score": found.score, "notes": list(notes)}
        text = "\n".join([*(f"note: {note}" for note in notes), found.text])
        shown, beside, recording = self.build_map(found), None, None
        if shown is not None:
            features = self.config.features
            sound = samples.numpy(), features.rate
            beside = Spectrogram(frames.T.numpy(), len(shown.columns), len(frames) * features.hop / 1000, sound)
            labels = shown.rows, shown.columns
            recording = record_source_attention(self.model, lambda: self.encode_frames(frames), found.numbers, labels)
        return Prediction(text, values, partial(self.draw_attention, frames, found), shown, recording, beside)

    def encode_frames(self, frames: Frames) -> EncoderOutput:
        """Return the states of one sound."""
        device = next(self.model.parameters()).device
        return self.model.encode(frames[None].to(device), torch.tensor([len(frames)], device=device))

    def compute_frames(self, samples: torch.Tensor) -> Frames:
        """Return the spectrogram of a sound; raise if it is too long."""
        features, limit = self.config.features, self.config.learning.limit
        count = features.count_frames(len(samples))
        if count > limit:
            got, most = (f"{number * features.hop / 1000:.1f} seconds" for number in (count, limit))
            raise wrong("sound", got, f"at most {most}, as in training", "cut it into sentences")
        return log_mel(samples, features)

    def transcribe_frames(self, clips: Sequence[Frames], *, attention: bool = False) -> list[Transcript]:
        """Transcribe spectrograms."""
        with torch.inference_mode():
            return transcribe(self.model, self.vocabulary, clips, SpeechSearchOptions(), attention=attention)

    def build_map(self, found: Transcript) -> LabeledWeights | None:
        """Return the weights, labeled by the second at which each position begins."""
        if found.weights is None:
            return None
        listener = self.config.listener
        step = listener.stack * 2 ** (listener.layers - 1) * self.config.features.hop / 1000
        starts = [f"{position * step:.1f}" for position in range(found.weights.shape[1])]
        return LabeledWeights(found.weights.tolist(), starts, found.tokens, TITLE)

    def draw_attention(self, frames: Frames, found: Transcript, title: str = "", language: Language = "en") -> Any:
        """Draw the spectrogram, and under it the attention of each symbol."""
        from regard.inspect.draw.spectrogram import draw_spectrogram

        if found.weights is None:
            raise no_attention_error("model", "the sound", "location")
        seconds = len(frames) * self.config.features.hop / 1000
        weights = found.weights.cpu().numpy()
        return draw_spectrogram(frames.numpy().T, weights, found.tokens, seconds, title, language=language)
