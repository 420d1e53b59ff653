"""Speech as something that can be trained."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from regard.models import Model
from regard.tasks.data import Vocabulary, batches
from regard.tasks.data.fingerprints import check_same, keep
from regard.tasks.data.vocabularies import build as build_vocabulary
from regard.tasks.data.vocabularies import load
from regard.tasks.speech.clips import Clip, Sounds, about, fingerprint
from regard.tasks.speech.config import SpeechConfig
from regard.tasks.speech.heard import Batch, Heard, heard, note_on_missed
from regard.tasks.speech.model import build
from regard.tasks.speech.opening import open_sounds
from regard.tasks.speech.scoring import scores, sums
from regard.tasks.speech.transcribing import Search, transcribe
from regard.tasks.translation.numbered import alike
from regard.training import Batched, Goal, Loss, Part

VOCABULARY = "symbols"


class Speech:
    """Learns to write down what is said. See `regard.training.Task` for what each method is."""

    def __init__(self, config: SpeechConfig, sounds: Sounds, vocabulary: Vocabulary) -> None:
        self.config, self.sounds, self.vocabulary = config, sounds, vocabulary
        self.heard = lru_cache(maxsize=1)(self.heard_now)

    @property
    def goal(self) -> Goal:
        return goal_of(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the sounds."""
        limit = self.config.learning.limit
        missed = note_on_missed(self.to_measure, self.config.features, limit)
        return (
            *about(self.sounds),
            *self.sounds.notes,
            *self.heard(0).notes,
            *(f"validation: {note}" for note in missed),
        )

    def model(self) -> Model[Any]:
        return build(self.config, symbols=len(self.vocabulary))

    def heard_now(self, epoch: int) -> Heard:
        return self.as_frames(self.sounds.training(epoch))

    def as_frames(self, clips: Sequence[Clip]) -> Heard:
        return heard(clips, self.config.features, self.vocabulary, self.config.learning.limit)

    @property
    def to_measure(self) -> Sequence[Clip]:
        return self.sounds.validation[: self.config.measure.most]

    @cached_property
    def held_out(self) -> Heard:
        return self.as_frames(self.to_measure)

    def epoch(self, number: int, part: Part) -> Sequence[Batch]:
        clips = self.heard(number if self.sounds.endless else 0)
        seed, budget = self.config.training.seed, self.config.learning.budget
        return Batched(batches(clips.lengths, budget, seed, number, rank=part.rank, world=part.world), clips.batch)

    def loss(self, model: Any, batch: Batch) -> Loss:
        losses = model.loss(*batch, smoothing=self.config.learning.smoothing)
        return Loss(losses.total, losses.tokens)

    def measure(self, model: Any, part: Part) -> Mapping[str, float]:
        own = Heard(part.of(self.held_out.frames), part.of(self.held_out.targets))
        search = Search(beam=self.config.measure.beam)
        found = transcribe(model, self.vocabulary, own.frames, search)
        right = [self.vocabulary.decode(target) for target in own.targets]
        missed = part.of(self.held_out.missed)
        said = [*(one.text for one in found), *("" for _ in missed)]
        return self.surprise(model, own) | sums(said, [*right, *missed])

    def surprise(self, model: Any, own: Heard) -> dict[str, float]:
        """How unlikely the right texts are to the model."""
        counted, device = {"surprise": 0.0, "tokens": 0.0}, next(model.parameters()).device
        for chosen in alike(own.lengths, self.config.learning.budget):
            losses = model.loss(*(tensor.to(device) for tensor in own.batch(chosen)))
            counted["surprise"] += float(losses.surprise)
            counted["tokens"] += losses.tokens
        return counted

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / max(1.0, total["tokens"])} | scores(total)

    def save(self, folder: Path) -> None:
        self.vocabulary.save(folder, VOCABULARY)
        keep(folder, fingerprint(self.sounds))


def task(config: SpeechConfig, run: Path | None = None) -> Speech:
    """The task of a new run, or of one that has its vocabulary in a folder."""
    sounds = open_sounds(config.data, config.features.rate)
    if run is not None:
        check_same("sounds", fingerprint(sounds), run)
        return Speech(config, sounds, load(run, VOCABULARY))
    texts = [clip.text for clip in sounds.training(0)]
    return Speech(config, sounds, build_vocabulary(texts, config.vocabulary))


def goal_of(config: SpeechConfig) -> Goal:
    """What decides which weights are the best."""
    return Goal(config.measure.goal, "lower")
