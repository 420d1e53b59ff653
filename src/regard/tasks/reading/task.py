"""Reading as something that can be trained."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import cast

import torch
from torch import nn

from regard.errors import wrong
from regard.tasks.data import make_batches
from regard.tasks.data.fingerprints import check_fingerprint, save_fingerprint
from regard.tasks.data.text_files import locate_data
from regard.tasks.reading.answers import BUDGET, answer_questions
from regard.tasks.reading.config import FACTS, ReadingConfig, ReadingData
from regard.tasks.reading.examples import (
    ReadingBatch,
    ReadingExample,
    collate_batch,
    encode_question,
    encode_short_questions,
    move_batch,
)
from regard.tasks.reading.facts import FactsDataset
from regard.tasks.reading.lexicon import PADDING, Lexicon
from regard.tasks.reading.metrics import compute_metrics, compute_sums
from regard.tasks.reading.model import SpanReader, SpanScores
from regard.tasks.reading.questions import ReadingDataset, compute_fingerprint, describe_dataset
from regard.tasks.reading.squad import read_squad
from regard.tasks.reading.vectors import WordVectors, read_vectors
from regard.tasks.reading.words import split_words
from regard.tasks.translation.encoded_pairs import group_by_length
from regard.training import DataShare, Goal, LazyBatches, Loss, find_checkpoints


class ReadingTask:
    """Learns to find the answer in a passage. See `regard.load_training.Task` for what each method is."""

    def __init__(
        self, config: ReadingConfig, dataset: ReadingDataset, lexicon: Lexicon, vectors: WordVectors | None = None
    ) -> None:
        self.config, self.dataset, self.lexicon, self.vectors = config, dataset, lexicon, vectors
        self.get_examples = lru_cache(maxsize=1)(self.encode_epoch)

    @property
    def goal(self) -> Goal:
        return get_goal(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the questions."""
        return (*describe_dataset(self.dataset), *self.dataset.notes, *self.get_examples(0)[1])

    def model(self) -> SpanReader:
        return SpanReader(self.config.reader, build_embedding(self.config, self.lexicon, self.vectors))

    def encode_epoch(self, epoch: int) -> tuple[list[ReadingExample], list[str]]:
        learning = self.config.learning
        return encode_short_questions(
            self.dataset.load_training(epoch), self.lexicon, learning.limit, learning.question
        )

    @cached_property
    def held_out(self) -> list[ReadingExample]:
        return [encode_question(one, self.lexicon) for one in self.dataset.validation[: self.config.measure.most]]

    def epoch(self, number: int, part: DataShare) -> Sequence[ReadingBatch]:
        pages, _ = self.get_examples(number if self.dataset.endless else 0)
        lengths, seed = [len(page.passage) for page in pages], self.config.training.seed
        groups = make_batches(lengths, self.config.learning.budget, seed, number, rank=part.rank, world=part.world)
        return LazyBatches(groups, lambda chosen: collate_batch([pages[index] for index in chosen]))

    def loss(self, model: nn.Module, batch: ReadingBatch) -> Loss:
        return Loss(compute_loss(model(batch.inputs), batch), len(batch.first))

    def measure(self, model: nn.Module, part: DataShare) -> Mapping[str, float]:
        pages, device, total = part.select(self.held_out), next(model.parameters()).device, 0.0
        for chosen in group_by_length([len(page.passage) for page in pages], BUDGET):
            batch = move_batch(collate_batch([pages[index] for index in chosen]), device)
            total += float(compute_loss(model(batch.inputs), batch))
        found = answer_questions(cast(SpanReader, model), pages, self.config.reader.longest)
        right = [[one.text for one in page.source.answers] for page in pages]
        return {"surprise": total} | compute_sums([one.text for one in found], right)

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / max(1.0, total["questions"])} | compute_metrics(total)

    def save(self, folder: Path) -> None:
        self.lexicon.save(folder)
        save_fingerprint(folder, compute_fingerprint(self.dataset))


def compute_loss(pointed: SpanScores, batch: ReadingBatch) -> torch.Tensor:
    """How unlikely the right first and last words are, over all questions."""
    judge = nn.functional.cross_entropy
    return judge(pointed.first, batch.first, reduction="sum") + judge(pointed.last, batch.last, reduction="sum")


def build_embedding(config: ReadingConfig, lexicon: Lexicon, vectors: WordVectors | None) -> nn.Embedding:
    """Vectors of words: learned, or those that others trained, which stay as they are.

    A run that has come to a checkpoint has them among its weights.
    """
    table = nn.Embedding(len(lexicon), config.reader.width, padding_idx=PADDING)
    if not config.data.vectors:
        return table
    with torch.no_grad():
        # Those by spelling are about as long as those of GloVe.
        nn.init.normal_(table.weight, std=0.4)
        table.weight[PADDING] = 0.0
        if vectors is not None:
            table.weight[1 : 1 + len(vectors.words)] = vectors.table
    return table.requires_grad_(False)


def build_task(config: ReadingConfig, run: Path | None = None) -> ReadingTask:
    """The task of a new run, or of one that has its words in a folder."""
    questions = open_questions(config.data)
    if run is not None:
        check_fingerprint("questions", compute_fingerprint(questions), run)
        return resume_task(config, questions, run)
    said = collect_words(questions)
    if not config.data.vectors:
        return ReadingTask(config, questions, Lexicon(sorted(said)))
    vectors = choose_vectors(config, said)
    return ReadingTask(config, questions, Lexicon(vectors.words), vectors)


def resume_task(config: ReadingConfig, questions: ReadingDataset, run: Path) -> ReadingTask:
    """The task of a run with its words. Vectors of others are in its checkpoints, and read again where it has none."""
    lexicon = Lexicon.load(run)
    if not config.data.vectors or find_checkpoints(run):
        return ReadingTask(config, questions, lexicon)
    vectors = choose_vectors(config, collect_words(questions))
    if tuple(vectors.words) != lexicon.known:
        got, fix = f"{config.data.vectors} with other words", "bring the file back, or start a new run"
        raise wrong("data.vectors", got, f"those of {run}", fix)
    return ReadingTask(config, questions, lexicon, vectors)


def open_questions(config: ReadingData) -> ReadingDataset:
    """The questions that a configuration names."""
    if config.questions == FACTS:
        return FactsDataset(size=config.size, held_out=config.held_out, seed=config.seed)
    return read_squad(locate_data(Path(config.questions)), validation=config.validation, test=config.test)


def collect_words(questions: ReadingDataset) -> set[str]:
    """The words of all passages and questions, in lower case: vectors of others are known for held-out ones too.

    Where vectors are learned, those of words that training never has are never learned either.
    """
    texts = {text for some in (questions.load_training(0), questions.validation, *questions.tests.values())
             for one in some for text in (one.passage, one.text)}  # fmt: skip
    return {word.text.lower() for text in texts for word in split_words(text)}


def choose_vectors(config: ReadingConfig, said: set[str]) -> WordVectors:
    """The vectors of the words that are said, and of the first of the file, which are the most frequent ones."""
    everything = read_vectors(Path(config.data.vectors))
    width = everything.table.shape[1]
    if width != config.reader.width:
        raise wrong(
            "reader.width", config.reader.width, f"{width}, that of the vectors", f"set reader.width to {width}"
        )
    kept = [place for place, word in enumerate(everything.words) if place < config.data.known or word in said]
    return WordVectors([everything.words[place] for place in kept], everything.table[torch.tensor(kept)])


def get_goal(config: ReadingConfig) -> Goal:
    """What decides which weights are the best."""
    return Goal(config.measure.goal, "lower" if config.measure.goal == "loss" else "higher")
