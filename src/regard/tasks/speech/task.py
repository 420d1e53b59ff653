"""How a speech recognizer is trained and measured."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.models import EncoderDecoder
from regard.tasks.data.dataset import describe_dataset
from regard.tasks.data.fingerprints import digest
from regard.tasks.sequence_task import SequenceTask
from regard.tasks.speech.clips import Clip
from regard.tasks.speech.encoded_clips import EncodedClips, describe_skipped, encode_clips
from regard.tasks.speech.metrics import compute_metrics, sum_errors
from regard.tasks.speech.model import build_speech_model
from regard.tasks.speech.transcripts import SpeechSearchOptions, transcribe
from regard.training import DataShare

VOCABULARY = "symbols"


class SpeechTask(SequenceTask):
    """Learns to write down what is said. See `regard.training.Task` for what each method is."""

    units = (
        "error: insertions, deletions and replacements, in percent of the symbols; words: the same of words; "
        "exact: percent of the clips; loss: nats a symbol"
    )

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the sounds."""
        described = describe_dataset(self.dataset, "clips", collect_keys=digest_clips)
        skipped = describe_skipped(self.validation_items, self.config.features, self.config.learning.limit)
        return (*described, *self.get_encoded(0).notes, *(f"validation: {note}" for note in skipped))

    def model(self) -> EncoderDecoder[Any]:
        return build_speech_model(self.config, symbols=len(self.vocabulary))

    def encode_epoch(self, epoch: int) -> EncodedClips:
        return self.encode(self.dataset.load_training(epoch))

    def encode(self, clips: Sequence[Clip]) -> EncodedClips:
        """Return the clips that are short enough, as frames and token ids."""
        return encode_clips(clips, self.config.features, self.vocabulary, self.config.learning.limit)

    @cached_property
    def encoded_validation(self) -> EncodedClips:
        """The validation clips, encoded."""
        return self.encode(self.validation_items)

    def measure(self, model: Any, part: DataShare) -> Mapping[str, float]:
        frames, targets, _, skipped = self.encoded_validation
        own = EncodedClips(part.select(frames), part.select(targets))
        transcripts = transcribe(model, self.vocabulary, own.frames, SpeechSearchOptions(beam=self.config.measure.beam))
        references = [self.vocabulary.decode(target) for target in own.targets]
        missed = part.select(skipped)
        texts = [*(transcript.text for transcript in transcripts), *("" for _ in missed)]
        return self.measure_loss(model, own) | sum_errors(texts, [*references, *missed])

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / max(1.0, total["tokens"])} | compute_metrics(total)

    def save_vocabulary(self, folder: Path) -> None:
        self.vocabulary.save(folder, VOCABULARY)


def digest_clips(clips: Sequence[Clip]) -> list[str]:
    """Return a hash of each sound, by which equal ones are found."""
    return [digest([clip.samples.numpy().tobytes()]) for clip in clips]
