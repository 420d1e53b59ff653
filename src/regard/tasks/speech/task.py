"""Speech as something that can be trained."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from regard.models import EncoderDecoder
from regard.tasks.data import Vocabulary, make_batches
from regard.tasks.data.fingerprints import check_fingerprint, save_fingerprint
from regard.tasks.data.vocabularies import build_vocabulary as build_vocabulary
from regard.tasks.data.vocabularies import load_vocabulary
from regard.tasks.speech.clips import Clip, Sounds, compute_fingerprint, describe_sounds
from regard.tasks.speech.config import SpeechConfig
from regard.tasks.speech.encoded_clips import EncodedClips, SpeechBatch, describe_skipped, encode_clips
from regard.tasks.speech.metrics import compute_metrics, sum_errors
from regard.tasks.speech.model import build_speech_model
from regard.tasks.speech.sound_source import open_sounds
from regard.tasks.speech.transcripts import SpeechSearchOptions, transcribe
from regard.tasks.translation.encoded_pairs import group_by_length
from regard.training import DataShare, Goal, LazyBatches, Loss

VOCABULARY = "symbols"


class SpeechTask:
    """Learns to write down what is said. See `regard.load_training.Task` for what each method is."""

    def __init__(self, config: SpeechConfig, sounds: Sounds, vocabulary: Vocabulary) -> None:
        self.config, self.sounds, self.vocabulary = config, sounds, vocabulary
        self.get_encoded = lru_cache(maxsize=1)(self.encode_epoch)

    @property
    def goal(self) -> Goal:
        return get_goal(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the sounds."""
        limit = self.config.learning.limit
        missed = describe_skipped(self.validation_clips, self.config.features, limit)
        return (
            *describe_sounds(self.sounds),
            *self.sounds.notes,
            *self.get_encoded(0).notes,
            *(f"validation: {note}" for note in missed),
        )

    def model(self) -> EncoderDecoder[Any]:
        return build_speech_model(self.config, symbols=len(self.vocabulary))

    def encode_epoch(self, epoch: int) -> EncodedClips:
        return self.encode(self.sounds.load_training(epoch))

    def encode(self, clips: Sequence[Clip]) -> EncodedClips:
        return encode_clips(clips, self.config.features, self.vocabulary, self.config.learning.limit)

    @property
    def validation_clips(self) -> Sequence[Clip]:
        return self.sounds.validation[: self.config.measure.most]

    @cached_property
    def held_out(self) -> EncodedClips:
        return self.encode(self.validation_clips)

    def epoch(self, number: int, part: DataShare) -> Sequence[SpeechBatch]:
        clips = self.get_encoded(number if self.sounds.endless else 0)
        seed, budget = self.config.training.seed, self.config.learning.budget
        return LazyBatches(
            make_batches(clips.lengths, budget, seed, number, rank=part.rank, world=part.world), clips.collate
        )

    def loss(self, model: Any, batch: SpeechBatch) -> Loss:
        losses = model.loss(*batch, smoothing=self.config.learning.smoothing)
        return Loss(losses.total, losses.tokens)

    def measure(self, model: Any, part: DataShare) -> Mapping[str, float]:
        own = EncodedClips(part.select(self.held_out.frames), part.select(self.held_out.targets))
        search = SpeechSearchOptions(beam=self.config.measure.beam)
        found = transcribe(model, self.vocabulary, own.frames, search)
        right = [self.vocabulary.decode(target) for target in own.targets]
        missed = part.select(self.held_out.skipped)
        said = [*(one.text for one in found), *("" for _ in missed)]
        return self.measure_loss(model, own) | sum_errors(said, [*right, *missed])

    def measure_loss(self, model: Any, own: EncodedClips) -> dict[str, float]:
        """How unlikely the right texts are to the model."""
        counted, device = {"surprise": 0.0, "tokens": 0.0}, next(model.parameters()).device
        for chosen in group_by_length(own.lengths, self.config.learning.budget):
            losses = model.loss(*(tensor.to(device) for tensor in own.collate(chosen)))
            counted["surprise"] += float(losses.negative_log_likelihood)
            counted["tokens"] += losses.tokens
        return counted

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / max(1.0, total["tokens"])} | compute_metrics(total)

    def save(self, folder: Path) -> None:
        self.vocabulary.save(folder, VOCABULARY)
        save_fingerprint(folder, compute_fingerprint(self.sounds))


def build_task(config: SpeechConfig, run: Path | None = None) -> SpeechTask:
    """The task of a new run, or of one that has its vocabulary in a folder."""
    sounds = open_sounds(config.data, config.features.rate)
    if run is not None:
        check_fingerprint("sounds", compute_fingerprint(sounds), run)
        return SpeechTask(config, sounds, load_vocabulary(run, VOCABULARY))
    texts = [clip.text for clip in sounds.load_training(0)]
    return SpeechTask(config, sounds, build_vocabulary(texts, config.vocabulary))


def get_goal(config: SpeechConfig) -> Goal:
    """What decides which weights are the best."""
    return Goal(config.measure.goal, "lower")
