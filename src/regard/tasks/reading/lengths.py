"""The lengths of passages and answers that a reader is made for, as its questions ask."""

from collections.abc import Sequence
from dataclasses import replace

from regard.tasks.data.words import find_words
from regard.tasks.reading.config import ReadingConfig
from regard.tasks.reading.questions import ReadingDataset

NEARLY_ALL = 0.95
PASSAGE, ANSWER = 300, 15  # words, enough for English; characters of Chinese are words, and there are more of them


def adapt_lengths(config: ReadingConfig, dataset: ReadingDataset) -> ReadingConfig:
    """Return the configuration with lengths that nearly all passages and answers have, if none are named."""
    questions, cut = dataset.load_training(0), config.data.words
    reader, learning = config.reader, config.learning
    if reader.longest is None:
        answers = [len(find_words(question.answers[0].text, cut)) for question in questions]
        reader = replace(reader, longest=find_length(answers, ANSWER))
    if learning.limit is None:
        passages = [len(find_words(text, cut)) for text in {question.passage for question in questions}]
        learning = replace(learning, limit=min(learning.budget, find_length(passages, PASSAGE)))
    return replace(config, reader=reader, learning=learning)


def find_length(lengths: Sequence[int], least: int) -> int:
    """Return the length that nearly all of these do not exceed, at least so much.

    >>> find_length(range(100), 15), find_length([2, 3], 15)
    (95, 15)
    """
    return max(least, sorted(lengths)[int(NEARLY_ALL * len(lengths))])
