"""How a reader is trained and measured, and where its words come from."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import cast

import torch
from torch import nn

from regard.errors import wrong
from regard.tasks.data.batches import group_by_length
from regard.tasks.data.dataset import describe_dataset
from regard.tasks.data.text_files import locate_data
from regard.tasks.data.words import WordCut, describe_repetition, find_words
from regard.tasks.reading.answers import BUDGET, answer_questions
from regard.tasks.reading.config import ReadingConfig, ReadingData
from regard.tasks.reading.examples import (
    EncodedQuestions,
    ReadingBatch,
    ReadingExample,
    collate_batch,
    encode_question,
    encode_short_questions,
    move_batch,
)
from regard.tasks.reading.fact_language import LANGUAGES
from regard.tasks.reading.facts import FactsDataset
from regard.tasks.reading.lengths import ANSWER, PASSAGE
from regard.tasks.reading.lexicon import PADDING, Lexicon
from regard.tasks.reading.metrics import compute_metrics, compute_sums
from regard.tasks.reading.model import SpanReader, SpanScores
from regard.tasks.reading.questions import PassageQuestion, ReadingDataset
from regard.tasks.reading.squad import read_squad
from regard.tasks.reading.vectors import WordVectors, read_vectors
from regard.tasks.sequence_task import SequenceTask
from regard.training import DataShare, Loss, find_checkpoints


class ReadingTask(SequenceTask):
    """Learns to find the answer in a passage. See `regard.training.Task` for what each method is."""

    units = (
        "em, f1: in percent, as SQuAD 1.1 has them; answers in Chinese by character, as CMRC 2018 has them; "
        "loss: nats a question"
    )

    def __init__(
        self, config: ReadingConfig, dataset: ReadingDataset, lexicon: Lexicon, vectors: WordVectors | None = None
    ) -> None:
        super().__init__(config, dataset, lexicon)
        self.vectors = vectors

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the questions."""
        described = describe_dataset(self.dataset, "questions", "passages", collect_passages)
        examples = self.get_encoded(0).examples
        words = {example.source.passage: example.words for example in examples}.values()
        repeated = describe_repetition("passages", (word.text.lower() for passage in words for word in passage))
        return (*described, *self.get_encoded(0).notes, *repeated)

    def model(self) -> SpanReader:
        return SpanReader(self.config.reader, build_embedding(self.config, self.vocabulary, self.vectors))

    def encode_epoch(self, epoch: int) -> EncodedQuestions:
        learning, questions = self.config.learning, self.dataset.load_training(epoch)
        return encode_short_questions(questions, self.vocabulary, learning.limit or PASSAGE, learning.question)

    @cached_property
    def encoded_validation(self) -> list[ReadingExample]:
        """The questions that are measured while training."""
        questions = self.validation_items
        return [encode_question(question, self.vocabulary) for question in questions]

    def loss(self, model: nn.Module, batch: ReadingBatch) -> Loss:
        return Loss(compute_loss(model(batch.inputs), batch), len(batch.first))

    def measure(self, model: nn.Module, part: DataShare) -> Mapping[str, float]:
        examples, device, total = part.select(self.encoded_validation), next(model.parameters()).device, 0.0
        for chosen in group_by_length([len(example.passage) for example in examples], BUDGET):
            batch = move_batch(collate_batch([examples[index] for index in chosen]), device)
            total += float(compute_loss(model(batch.inputs), batch))
        answers = answer_questions(cast(SpanReader, model), examples, self.config.reader.longest or ANSWER)
        right = [[answer.text for answer in example.source.answers] for example in examples]
        return {"surprise": total} | compute_sums([answer.text for answer in answers], right)

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / max(1.0, total["questions"])} | compute_metrics(total)

    def save_vocabulary(self, folder: Path) -> None:
        self.vocabulary.save(folder)


def collect_passages(questions: Sequence[PassageQuestion]) -> set[str]:
    """Return the passages of questions."""
    return {question.passage for question in questions}


def compute_loss(pointed: SpanScores, batch: ReadingBatch) -> torch.Tensor:
    """Return the negative log-likelihood of the right first and last words, summed over all questions."""
    pairs = ((pointed.first, batch.first), (pointed.last, batch.last))
    return torch.stack([nn.functional.cross_entropy(*pair, reduction="sum") for pair in pairs]).sum()


def build_embedding(config: ReadingConfig, lexicon: Lexicon, vectors: WordVectors | None) -> nn.Embedding:
    """Return vectors of words: learned, or pretrained ones, which are not trained further.

    A run that has a checkpoint has the pretrained ones among its weights.
    """
    table = nn.Embedding(len(lexicon), config.reader.width, padding_idx=PADDING)
    if not config.data.vectors:
        return table
    with torch.no_grad():
        # Vectors by spelling are about as long as those of GloVe.
        nn.init.normal_(table.weight, std=0.4)
        table.weight[PADDING] = 0.0
        if vectors is not None:
            table.weight[1 : 1 + len(vectors.words)] = vectors.table
    return table.requires_grad_(False)


def start_task(config: ReadingConfig, questions: ReadingDataset) -> ReadingTask:
    """Return the task of a new run."""
    cut = config.data.words
    words = collect_words(questions, cut)
    if not config.data.vectors:
        return ReadingTask(config, questions, Lexicon(sorted(words), cut=cut))
    vectors = choose_vectors(config, words)
    return ReadingTask(config, questions, Lexicon(vectors.words, cut=cut), vectors)


def resume_task(config: ReadingConfig, questions: ReadingDataset, run: Path) -> ReadingTask:
    """Return the task of a run, with its words. Pretrained vectors are read again only if it has no checkpoint."""
    lexicon = Lexicon.load(run)
    if not config.data.vectors or find_checkpoints(run):
        return ReadingTask(config, questions, lexicon)
    vectors = choose_vectors(config, collect_words(questions, config.data.words))
    if tuple(vectors.words) != lexicon.known:
        got, fix = f"{config.data.vectors} with other words", "bring the file back, or start a new run"
        raise wrong("data.vectors", got, f"those of {run}", fix)
    return ReadingTask(config, questions, lexicon, vectors)


def open_questions(config: ReadingData) -> ReadingDataset:
    """Return the questions that a configuration names."""
    if config.questions in LANGUAGES:
        return FactsDataset(config.size, config.held_out, config.seed, LANGUAGES[config.questions])
    return read_squad(locate_data(Path(config.questions)), validation=config.validation, test=config.test)


def collect_words(questions: ReadingDataset, cut: WordCut) -> set[str]:
    """Return the words of all passages and questions, in lower case.

    Held-out ones are among them because pretrained vectors know them too; learned vectors of words that are not in the
    training set stay as they are initialized.
    """
    splits = (questions.load_training(0), questions.validation, *questions.tests.values())
    texts = {text for split in splits for question in split for text in (question.passage, question.text)}
    return {word.text.lower() for text in texts for word in find_words(text, cut)}


def choose_vectors(config: ReadingConfig, used: set[str]) -> WordVectors:
    """Return the vectors of the used words, and of the first words of the file, which are the most frequent."""
    everything = read_vectors(Path(config.data.vectors))
    width = everything.table.shape[1]
    if width != config.reader.width:
        raise wrong(
            "reader.width", config.reader.width, f"{width}, that of the vectors", f"set reader.width to {width}"
        )
    kept = [row for row, word in enumerate(everything.words) if row < config.data.known or word in used]
    return WordVectors([everything.words[row] for row in kept], everything.table[torch.tensor(kept)])
