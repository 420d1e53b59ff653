"""Translation as something that can be trained."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from regard.models import EncoderDecoder, build_model
from regard.tasks.data import (
    ParallelText,
    SentencePair,
    Vocabularies,
    build_vocabularies,
    compute_fingerprint,
    load_vocabularies,
    make_batches,
    open_text,
    save_vocabularies,
)
from regard.tasks.data.fingerprints import check_fingerprint, save_fingerprint
from regard.tasks.data.split_notes import describe_sizes
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.encoded_pairs import EncodedPairs, TranslationBatch, encode_pairs, group_by_length
from regard.tasks.translation.metrics import compute_metrics, sum_matches
from regard.tasks.translation.text import ENDLESS, collect_vocabulary_pairs
from regard.tasks.translation.translations import TranslationSearchOptions, translate
from regard.training import DataShare, Goal, LazyBatches, Loss


class TranslationTask:
    """Learns to say in one language what was said in another. See `regard.load_training.Task` for what each method is."""

    def __init__(self, config: TranslationConfig, text: ParallelText, vocabularies: Vocabularies) -> None:
        self.config, self.text, self.vocabularies = config, text, vocabularies
        self.get_encoded = lru_cache(maxsize=1)(self.encode_epoch)
        self.get_encoded_held_out = lru_cache(maxsize=1)(self.encode_held_out)

    @property
    def goal(self) -> Goal:
        return get_goal(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the text."""
        tests = {name: len(pairs) for name, pairs in self.text.tests.items()}
        endless = self.config.data.text in ENDLESS
        counted = describe_sizes(
            "pairs", len(self.text.load_training(0)), len(self.text.validation), tests, endless=endless
        )
        return (counted, *self.text.notes, *self.get_encoded(0).notes, *self.describe_lost_characters())

    def describe_lost_characters(self) -> Iterator[str]:
        """Notes on characters that the vocabularies do not give back."""
        pairs, both = self.text.load_training(0), self.vocabularies
        lost = [
            {*both.source.find_lost_characters(pair.source), *both.target.find_lost_characters(pair.target)}
            for pair in pairs
        ]
        for character in sorted(set().union(*lost)):
            count = sum(character in some for some in lost)
            yield f"{count:,} of the {len(pairs):,} pairs have {character}, which stands for a blank: it is read as one"

    def model(self) -> EncoderDecoder[Any]:
        return build_model(
            self.config.model, source=len(self.vocabularies.source), target=len(self.vocabularies.target)
        )

    def encode_epoch(self, epoch: int) -> EncodedPairs:
        """The training pairs of an epoch; files have the same in each."""
        return encode_pairs(self.text.load_training(epoch), self.vocabularies, self.config.learning.limit)

    def encode_held_out(self) -> EncodedPairs:
        """The validation pairs that are measured, as far as they are within the limit; one sentence where none is."""
        pairs = self.text.validation[: self.config.measure.most]
        return encode_pairs(pairs, self.vocabularies, self.config.learning.limit) if pairs else EncodedPairs([], [])

    def epoch(self, number: int, part: DataShare) -> Sequence[TranslationBatch]:
        pairs = self.get_encoded(number if self.config.data.text in ENDLESS else 0)
        seed, budget = self.config.training.seed, self.config.learning.budget
        return LazyBatches(
            make_batches(pairs.lengths, budget, seed, number, rank=part.rank, world=part.world), pairs.collate
        )

    def loss(self, model: Any, batch: TranslationBatch) -> Loss:
        losses = model.loss(*batch, smoothing=self.config.learning.smoothing)
        return Loss(losses.total, losses.tokens)

    def measure(self, model: Any, part: DataShare) -> Mapping[str, float]:
        pairs = part.select(self.text.validation[: self.config.measure.most])
        # The share is of those within the limit: a share of all pairs might have none of them.
        held_out = EncodedPairs(
            part.select(self.get_encoded_held_out().sources), part.select(self.get_encoded_held_out().targets)
        )
        return self.measure_loss(model, held_out) | self.measure_quality(model, pairs)

    def measure_loss(self, model: Any, held_out: EncodedPairs) -> dict[str, float]:
        """How unlikely the right translations are to the model."""
        counted, device = {"surprise": 0.0, "tokens": 0.0}, next(model.parameters()).device
        lengths = [max(both) for both in held_out.lengths]
        for chosen in group_by_length(lengths, self.config.learning.budget):
            losses = model.loss(*(tensor.to(device) for tensor in held_out.collate(chosen)))
            counted["surprise"] += float(losses.negative_log_likelihood)
            counted["tokens"] += losses.tokens
        return counted

    def measure_quality(self, model: Any, pairs: Sequence[SentencePair]) -> dict[str, float]:
        """How good the model's own translations are."""
        search = TranslationSearchOptions(
            beam=self.config.measure.beam,
            budget=self.config.learning.budget,
            longest=self.config.model.longest,
        )
        found = translate(model, self.vocabularies, [pair.source for pair in pairs], search)
        return sum_matches(
            [one.first.text for one in found], [pair.target for pair in pairs], self.config.measure.tokenizer
        )

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / total["tokens"]} | compute_metrics(total)

    def save(self, folder: Path) -> None:
        save_vocabularies(self.vocabularies, folder)
        save_fingerprint(folder, compute_fingerprint(self.text))


def build_task(config: TranslationConfig, run: Path | None = None) -> TranslationTask:
    """The task of a new run, or of one that has its vocabularies in a folder."""
    text = open_text(config.data)
    if run is not None:
        check_fingerprint("text", compute_fingerprint(text), run)
        return TranslationTask(config, text, load_vocabularies(run))
    cutting = config.vocabulary
    pairs = collect_vocabulary_pairs(text, config.data.text)
    return TranslationTask(
        config, text, build_vocabularies(pairs, cutting.source, None if cutting.joint else cutting.target)
    )


def get_goal(config: TranslationConfig) -> Goal:
    """What decides which weights are the best."""
    metric = config.measure.goal
    return Goal(metric, "lower" if metric == "loss" else "higher")
