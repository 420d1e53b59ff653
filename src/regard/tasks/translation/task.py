"""How a translator is trained and measured."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.models import EncoderDecoder, build_model
from regard.tasks.data import SentencePair, save_vocabularies
from regard.tasks.data.dataset import describe_dataset
from regard.tasks.data.text_corpus import StoredCorpus
from regard.tasks.sequence_task import SequenceTask
from regard.tasks.translation.encoded_pairs import EncodedPairs, encode_corpus, encode_pairs
from regard.tasks.translation.fit import describe_fit
from regard.tasks.translation.metrics import compute_metrics, sum_matches
from regard.tasks.translation.translations import TranslationSearchOptions, translate
from regard.training import DataShare


class TranslationTask(SequenceTask):
    """Learns to translate; `vocabulary` is a pair of them. See `regard.training.Task` for what each method is."""

    units = "bleu: from 0 to 100; exact: percent of the sentences; loss: nats a token"

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the text."""
        described = describe_dataset(self.dataset, "pairs")
        if not self.dataset.endless:
            described += describe_fit(self.config, len(self.dataset.load_training(0)))
        return (*described, *self.get_encoded(0).notes)

    def model(self) -> EncoderDecoder[Any]:
        source, target = self.vocabulary
        return build_model(self.config.model, source=len(source), target=len(target))

    def encode_epoch(self, epoch: int) -> EncodedPairs:
        limit = self.config.learning.limit
        if isinstance(self.dataset, StoredCorpus):
            return encode_corpus(self.dataset, self.vocabulary, limit)
        return encode_pairs(self.dataset.load_training(epoch), self.vocabulary, limit)

    @cached_property
    def encoded_validation(self) -> EncodedPairs:
        """The validation pairs within the limit; an error if all are longer."""
        return encode_pairs(self.validation_items, self.vocabulary, self.config.learning.limit)

    def measure(self, model: Any, part: DataShare) -> Mapping[str, float]:
        # The share is of those within the limit: a share of all pairs might have none of them.
        held_out = self.encoded_validation.select(slice(part.rank, None, part.world))
        return self.measure_loss(model, held_out) | self.measure_quality(model, part.select(self.validation_items))

    def measure_quality(self, model: Any, pairs: Sequence[SentencePair]) -> dict[str, float]:
        """Return what the quality of the model's translations is computed from."""
        config = self.config
        search = TranslationSearchOptions(
            beam=config.measure.beam, budget=config.learning.budget, longest=config.model.longest
        )
        results = translate(model, self.vocabulary, [pair.source for pair in pairs], search)
        hypotheses = [result.first.text for result in results]
        return sum_matches(hypotheses, [pair.target for pair in pairs], config.measure.tokenizer)

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / total["tokens"]} | compute_metrics(total)

    def save_vocabulary(self, folder: Path) -> None:
        save_vocabularies(self.vocabulary, folder)
