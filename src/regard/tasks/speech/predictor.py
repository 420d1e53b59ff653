"""A listener that was trained, ready to be asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from regard.errors import wrong
from regard.inspect.draw.chapters import Sound
from regard.models import Model
from regard.tasks.data import Vocabulary
from regard.tasks.data.fingerprints import check_held_out
from regard.tasks.data.vocabularies import load as load_vocabulary
from regard.tasks.predicting import Map, Prediction, Report, Split, nowhere, trained
from regard.tasks.speech.clips import Clip, Recorded, fingerprint
from regard.tasks.speech.config import SpeechConfig
from regard.tasks.speech.features import log_mel
from regard.tasks.speech.heard import Frames, note_on_missed
from regard.tasks.speech.model import build
from regard.tasks.speech.opening import open_sounds
from regard.tasks.speech.scoring import scores, sums
from regard.tasks.speech.sound import read_sound
from regard.tasks.speech.task import VOCABULARY
from regard.tasks.speech.transcribing import Search, Transcribed, transcribe

NOTE = "error: insertions, deletions and replacements, in percent of the symbols"


class SpeechPredictor:
    """Says how good a listener is, and what it hears in one file."""

    def __init__(
        self, config: SpeechConfig, vocabulary: Vocabulary, model: Model[Any], run: Path | None = None
    ) -> None:
        self.config, self.vocabulary, self.model, self.run = config, vocabulary, model, run

    def evaluate(self, data: str | None, split: Split) -> dict[str, Report]:
        return {name: self.report(clips) for name, clips in self.sets(data, split).items()}

    def sets(self, data: str | None, split: Split) -> Mapping[str, Sequence[Clip]]:
        """The clips to be tested on, by the names of their sets."""
        named = self.config.data if data is None else replace(self.config.data, sounds=data)
        sounds = open_sounds(named, self.config.features.rate)
        if self.run is not None and data is None and isinstance(sounds, Recorded) and sounds.cut:
            check_held_out("sounds", fingerprint(sounds), self.run)
        return sounds.tests if split == "test" else {"validation": sounds.validation}

    def report(self, clips: Sequence[Clip]) -> Report:
        """Percentages of errors to the symbols and words, and of clips without any. In a long clip all is an error."""
        features, limit = self.config.features, self.config.learning.limit
        short = [number for number, clip in enumerate(clips) if features.frames(len(clip.samples)) <= limit]
        found = self.listen([self.frames(clips[number].samples) for number in short])
        said = dict(zip(short, (one.text for one in found), strict=True))
        metrics = scores(sums([said.get(number, "") for number in range(len(clips))], [clip.text for clip in clips]))
        return Report(len(clips), metrics, [NOTE, *note_on_missed(clips, features, limit)])

    def predict(self, words: Sequence[str]) -> Prediction:
        """What is said in a sound file; in the first clip that was held out, where none is named."""
        if len(words) > 1:
            raise wrong("sound", f"{len(words)} names", "one sound file", "name one at a time")
        if words:
            samples, notes = read_sound(Path(words[0]), self.config.features.rate)
            name = words[0]
        else:
            clip = next(iter(self.sets(None, "test").values()))[0]
            samples, notes, name = clip.samples, (), clip.name
        return self.prediction(samples, name, notes)

    def prediction(self, samples: torch.Tensor, name: str, notes: Sequence[str]) -> Prediction:
        frames = self.frames(samples)
        found = self.listen([frames], attention=True)[0]
        values = {"sound": name, "text": found.text, "tokens": found.tokens, "score": found.score, "notes": list(notes)}
        text = "\n".join([*(f"note: {note}" for note in notes), found.text])
        shown, beside = self.map(found), None
        if shown is not None:
            beside = Sound(frames.T.numpy(), len(shown.columns), len(frames) * self.config.features.hop / 1000)
        return Prediction(text, values, lambda: self.drawn(frames, found), shown, beside=beside)

    def frames(self, samples: torch.Tensor) -> Frames:
        """A sound as the model hears it, or a sentence on why it is too long."""
        features, limit = self.config.features, self.config.learning.limit
        count = features.frames(len(samples))
        if count > limit:
            got, most = (f"{number * features.hop / 1000:.1f} seconds" for number in (count, limit))
            raise wrong("sound", got, f"at most {most}, as in training", "cut it into sentences")
        return log_mel(samples, features)

    def listen(self, clips: Sequence[Frames], *, attention: bool = False) -> list[Transcribed]:
        with torch.inference_mode():
            return transcribe(self.model, self.vocabulary, clips, Search(), attention=attention)

    def map(self, found: Transcribed) -> Map | None:
        """The weights with the second at which each position begins."""
        if found.weights is None:
            return None
        listener = self.config.listener
        step = listener.stack * 2 ** (listener.layers - 1) * self.config.features.hop / 1000
        starts = [f"{place * step:.1f}" for place in range(found.weights.shape[1])]
        return Map(found.weights.tolist(), starts, found.tokens)

    def drawn(self, frames: Frames, found: Transcribed) -> Any:
        """The spectrogram, and under it where each symbol was heard."""
        from regard.inspect.draw.listening import listening

        if found.weights is None:
            raise nowhere("model", "the sound", "location")
        seconds = len(frames) * self.config.features.hop / 1000
        return listening(frames.numpy(), found.weights.cpu().numpy(), found.tokens, seconds)


def load(config: SpeechConfig, run: Path, weights: Path | None = None) -> SpeechPredictor:
    """The listener of a run folder, ready to be asked."""
    vocabulary = load_vocabulary(run, VOCABULARY)
    model = trained(lambda: build(config, symbols=len(vocabulary)), config.training, run, weights)
    return SpeechPredictor(config, vocabulary, cast(Model[Any], model), run)
