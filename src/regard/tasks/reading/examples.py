"""Questions as word ids, and batches of them as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.tasks.data.batches import filter_by_length, pad_rows
from regard.tasks.data.words import Word
from regard.tasks.reading.lexicon import PADDING, Lexicon
from regard.tasks.reading.model import ReadingInputs
from regard.tasks.reading.questions import Answer, PassageQuestion


class ReadingExample(NamedTuple):
    """A question as word ids, the words of its passage, the first and last word of its first answer, and what is
    `asked` in words.
    """

    passage: list[int]
    question: list[int]
    words: list[Word]
    span: tuple[int, int]
    source: PassageQuestion
    asked: list[str]

    def extract_text(self, first: int, last: int) -> str:
        """Return the text of the passage from one word to another."""
        return self.source.passage[self.words[first].begin : self.words[last].end]


class ReadingBatch(NamedTuple):
    """Padded passages and questions, and the first and last words of the answers."""

    inputs: ReadingInputs
    first: Tensor
    last: Tensor


class EncodedQuestions(NamedTuple):
    """The questions of an epoch, and notes on those that were left out."""

    examples: Sequence[ReadingExample]
    notes: Sequence[str] = ()

    @property
    def lengths(self) -> list[int]:
        """Lengths of the passages."""
        return [len(example.passage) for example in self.examples]

    def collate(self, chosen: Sequence[int]) -> ReadingBatch:
        """Return some of the questions as a batch."""
        return collate_batch([self.examples[index] for index in chosen])


def encode_question(question: PassageQuestion, lexicon: Lexicon) -> ReadingExample:
    """Return a question as word ids. A passage or question of nothing but blanks has one word, which is padding."""
    words, asked = lexicon.split(question.passage), lexicon.split(question.text)
    return ReadingExample(
        lexicon.encode(word.text for word in words) or [PADDING],
        lexicon.encode(word.text for word in asked) or [PADDING],
        words,
        find_span(words, question.answers[0]) if question.answers else (0, 0),
        question,
        [word.text for word in asked],
    )


def find_span(words: Sequence[Word], answer: Answer) -> tuple[int, int]:
    """Return the first and last of the words that share a character with the answer.

    >>> find_span(Lexicon([]).split("a small dog barks"), Answer("mall dog", 3))
    (1, 2)
    """
    end = answer.begin + len(answer.text)
    inside = [index for index, word in enumerate(words) if word.begin < end and word.end > answer.begin]
    return (inside[0], inside[-1]) if inside else (0, 0)


def encode_short_questions(
    questions: Sequence[PassageQuestion], lexicon: Lexicon, limit: int, asked: int
) -> EncodedQuestions:
    """Encode the questions that are short enough to train on, as their passages are, with a note on the others."""
    pages = [encode_question(question, lexicon) for question in questions]
    short, notes = filter_by_length([len(page.question) for page in pages], asked, "questions", "words")
    pages = [pages[index] for index in short]
    kept, more = filter_by_length([len(page.passage) for page in pages], limit, "passages", "words")
    return EncodedQuestions([pages[index] for index in kept], [*notes, *more])


def collate_inputs(examples: Sequence[ReadingExample]) -> ReadingInputs:
    """Return passages and questions as tensors."""
    passages, questions = [page.passage for page in examples], [page.question for page in examples]
    return ReadingInputs(pad_rows(passages), pad_rows(questions))


def collate_batch(examples: Sequence[ReadingExample]) -> ReadingBatch:
    """Return passages and questions with the answers."""
    first, last = zip(*(page.span for page in examples), strict=True)
    return ReadingBatch(collate_inputs(examples), torch.tensor(first), torch.tensor(last))


def move_batch(batch: ReadingBatch, device: torch.device) -> ReadingBatch:
    """Return a batch on a device."""
    return ReadingBatch(batch.inputs.to(device), batch.first.to(device), batch.last.to(device))
