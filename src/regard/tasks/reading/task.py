"""Reading as something that can be trained."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import cast

import torch
from torch import nn

from regard.errors import wrong
from regard.tasks.data import batches
from regard.tasks.data.fingerprints import check_same, keep
from regard.tasks.data.reading import located
from regard.tasks.reading.answering import BUDGET, answer
from regard.tasks.reading.config import FACTS, QuestionConfig, ReadingConfig
from regard.tasks.reading.facts import Facts
from regard.tasks.reading.lexicon import PADDING, Lexicon
from regard.tasks.reading.model import Pointed, SpanReader
from regard.tasks.reading.pages import Batch, Page, batch_of, page_of, pages_of, placed
from regard.tasks.reading.questions import Questions, about, fingerprint
from regard.tasks.reading.scoring import scores, sums
from regard.tasks.reading.squad import read_squad
from regard.tasks.reading.vectors import Vectors, read_vectors
from regard.tasks.reading.words import words_of
from regard.tasks.translation.numbered import alike
from regard.training import Batched, Goal, Loss, Part, checkpoints


class Reading:
    """Learns to find the answer in a passage. See `regard.training.Task` for what each method is."""

    def __init__(
        self, config: ReadingConfig, questions: Questions, lexicon: Lexicon, vectors: Vectors | None = None
    ) -> None:
        self.config, self.questions, self.lexicon, self.vectors = config, questions, lexicon, vectors
        self.pages = lru_cache(maxsize=1)(self.pages_now)

    @property
    def goal(self) -> Goal:
        return goal_of(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the questions."""
        return (*about(self.questions), *self.questions.notes, *self.pages(0)[1])

    def model(self) -> SpanReader:
        return SpanReader(self.config.reader, word_table(self.config, self.lexicon, self.vectors))

    def pages_now(self, epoch: int) -> tuple[list[Page], list[str]]:
        learning = self.config.learning
        return pages_of(self.questions.training(epoch), self.lexicon, learning.limit, learning.question)

    @cached_property
    def held_out(self) -> list[Page]:
        return [page_of(one, self.lexicon) for one in self.questions.validation[: self.config.measure.most]]

    def epoch(self, number: int, part: Part) -> Sequence[Batch]:
        pages, _ = self.pages(number if self.questions.endless else 0)
        lengths, seed = [len(page.passage) for page in pages], self.config.training.seed
        groups = batches(lengths, self.config.learning.budget, seed, number, rank=part.rank, world=part.world)
        return Batched(groups, lambda chosen: batch_of([pages[index] for index in chosen]))

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        return Loss(surprise(model(batch.pages), batch), len(batch.first))

    def measure(self, model: nn.Module, part: Part) -> Mapping[str, float]:
        pages, device, total = part.of(self.held_out), next(model.parameters()).device, 0.0
        for chosen in alike([len(page.passage) for page in pages], BUDGET):
            batch = placed(batch_of([pages[index] for index in chosen]), device)
            total += float(surprise(model(batch.pages), batch))
        found = answer(cast(SpanReader, model), pages, self.config.reader.longest)
        right = [[one.text for one in page.source.answers] for page in pages]
        return {"surprise": total} | sums([one.text for one in found], right)

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / max(1.0, total["questions"])} | scores(total)

    def save(self, folder: Path) -> None:
        self.lexicon.save(folder)
        keep(folder, fingerprint(self.questions))


def surprise(pointed: Pointed, batch: Batch) -> torch.Tensor:
    """How unlikely the right first and last words are, over all questions."""
    judge = nn.functional.cross_entropy
    return judge(pointed.first, batch.first, reduction="sum") + judge(pointed.last, batch.last, reduction="sum")


def word_table(config: ReadingConfig, lexicon: Lexicon, vectors: Vectors | None) -> nn.Embedding:
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


def task(config: ReadingConfig, run: Path | None = None) -> Reading:
    """The task of a new run, or of one that has its words in a folder."""
    questions = open_questions(config.data)
    if run is not None:
        check_same("questions", fingerprint(questions), run)
        return resumed(config, questions, run)
    said = spoken(questions)
    if not config.data.vectors:
        return Reading(config, questions, Lexicon(sorted(said)))
    vectors = chosen_vectors(config, said)
    return Reading(config, questions, Lexicon(vectors.words), vectors)


def resumed(config: ReadingConfig, questions: Questions, run: Path) -> Reading:
    """The task of a run with its words. Vectors of others are in its checkpoints, and read again where it has none."""
    lexicon = Lexicon.load(run)
    if not config.data.vectors or checkpoints(run):
        return Reading(config, questions, lexicon)
    vectors = chosen_vectors(config, spoken(questions))
    if tuple(vectors.words) != lexicon.known:
        got, fix = f"{config.data.vectors} with other words", "bring the file back, or start a new run"
        raise wrong("data.vectors", got, f"those of {run}", fix)
    return Reading(config, questions, lexicon, vectors)


def open_questions(config: QuestionConfig) -> Questions:
    """The questions that a configuration names."""
    if config.questions == FACTS:
        return Facts(size=config.size, held_out=config.held_out, seed=config.seed)
    return read_squad(located(Path(config.questions)), validation=config.validation, test=config.test)


def spoken(questions: Questions) -> set[str]:
    """The words of all passages and questions, in lower case: vectors of others are known for held-out ones too.

    Where vectors are learned, those of words that training never has are never learned either.
    """
    texts = {text for some in (questions.training(0), questions.validation, *questions.tests.values())
             for one in some for text in (one.passage, one.text)}  # fmt: skip
    return {word.text.lower() for text in texts for word in words_of(text)}


def chosen_vectors(config: ReadingConfig, said: set[str]) -> Vectors:
    """The vectors of the words that are said, and of the first of the file, which are the most frequent ones."""
    everything = read_vectors(Path(config.data.vectors))
    width = everything.table.shape[1]
    if width != config.reader.width:
        raise wrong(
            "reader.width", config.reader.width, f"{width}, that of the vectors", f"set reader.width to {width}"
        )
    kept = [place for place, word in enumerate(everything.words) if place < config.data.known or word in said]
    return Vectors([everything.words[place] for place in kept], everything.table[torch.tensor(kept)])


def goal_of(config: ReadingConfig) -> Goal:
    """What decides which weights are the best."""
    return Goal(config.measure.goal, "lower" if config.measure.goal == "loss" else "higher")
