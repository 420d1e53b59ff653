"""The configuration of a reader: questions, model, training and validation."""

from dataclasses import dataclass, field
from typing import Literal

from regard.models.ranges import CheckedConfig, Count, Rate
from regard.tasks.data.words import WordCut
from regard.training import Training


@dataclass(frozen=True, slots=True)
class ReadingData:
    """Which questions to learn from."""

    questions: str = "facts"  # facts, facts-zh (generated), a file like SQuAD 1.1, or a folder with train-… and dev-…
    words: WordCut = "character"  # how Chinese is cut: by character, or into words by rjieba; other scripts by word
    vectors: str = ""  # of words that others trained: a file of GloVe, or a folder with one; none: learned
    known: int = 20000  # words of that file, from its beginning, that are kept beside those of the questions
    validation: int | None = None  # articles of a file for validation; none: a twelfth, at most of 1000 questions
    test: int | None = None  # and for the test; none: a fifth
    size: int = 1000  # questions in an epoch of generated ones
    held_out: int = 300  # questions for validation and test each, of generated ones
    seed: int = 1  # of generated ones


@dataclass(frozen=True, slots=True)
class SpanReaderConfig(CheckedConfig):
    """Bidirectional attention flow (Seo et al. 2017), or the same reader with averages in its place."""

    attention: Literal["flow", "none"] = "flow"  # none: passage and question are averaged where they would be read
    score: str = "trilinear"  # or a name of the catalog
    width: Count = 100  # of the vectors of words, where they are learned
    hidden: Count = 48  # numbers in a state, in each direction
    layers: Count = 1  # of cells above the attention
    cell: Literal["gru", "lstm"] = "gru"
    dropout: Rate = 0.0  # rate of dropout, while training
    longest: Count | None = None  # words of an answer; none: as nearly all have that are learned from


@dataclass(frozen=True, slots=True)
class ReadingTraining(CheckedConfig):
    """The size of a batch."""

    budget: Count = 4000  # words of passages in a batch, padding included
    limit: Count | None = None  # words of a passage to learn from, longer ones are left out; none: 300, or nearly all
    question: Count = 60  # words of a question, in training and when asked


@dataclass(frozen=True, slots=True)
class ReadingEvaluation(CheckedConfig):
    """How held-out questions are measured while the model trains."""

    goal: Literal["f1", "em", "loss"] = "f1"  # decides which weights are the best
    most: Count = 1000  # questions of the validation set, from its beginning


@dataclass(frozen=True, slots=True)
class ReadingConfig:
    """The configuration of a reader."""

    task: Literal["reading"] = "reading"
    data: ReadingData = field(default_factory=ReadingData)
    reader: SpanReaderConfig = field(default_factory=SpanReaderConfig)
    learning: ReadingTraining = field(default_factory=ReadingTraining)
    measure: ReadingEvaluation = field(default_factory=ReadingEvaluation)
    training: Training = field(default_factory=Training)
