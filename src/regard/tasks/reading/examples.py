"""Questions in numbers, and batches of them as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.tasks.data import filter_by_length, pad
from regard.tasks.reading.lexicon import PADDING, Lexicon
from regard.tasks.reading.model import ReadingInputs
from regard.tasks.reading.questions import Answer, PassageQuestion
from regard.tasks.reading.words import Word, split_words


class ReadingExample(NamedTuple):
    """A question in numbers, the words of its passage, and the first and last word of its first answer."""

    passage: list[int]
    question: list[int]
    words: list[Word]
    span: tuple[int, int]
    source: PassageQuestion

    def extract_text(self, first: int, last: int) -> str:
        """The text from one word to another."""
        return self.source.passage[self.words[first].begin : self.words[last].end]


class ReadingBatch(NamedTuple):
    """Pages side by side, and where their answers begin and end."""

    inputs: ReadingInputs
    first: Tensor
    last: Tensor


def encode_question(question: PassageQuestion, lexicon: Lexicon) -> ReadingExample:
    """A question as a model reads it. A passage or question of nothing but blanks has one word, which is padding."""
    words, asked = split_words(question.passage), split_words(question.text)
    return ReadingExample(
        lexicon.encode(word.text for word in words) or [PADDING],
        lexicon.encode(word.text for word in asked) or [PADDING],
        words,
        find_span(words, question.answers[0]) if question.answers else (0, 0),
        question,
    )


def find_span(words: Sequence[Word], answer: Answer) -> tuple[int, int]:
    """The first and last of the words that share a character with the answer.

    >>> find_span(split_words("a small dog barks"), Answer("mall dog", 3))
    (1, 2)
    """
    end = answer.begin + len(answer.text)
    inside = [place for place, word in enumerate(words) if word.begin < end and word.end > answer.begin]
    return (inside[0], inside[-1]) if inside else (0, 0)


def encode_short_questions(
    questions: Sequence[PassageQuestion], lexicon: Lexicon, limit: int, asked: int
) -> tuple[list[ReadingExample], list[str]]:
    """Those whose passage and question are short enough to learn from, and a note on the others."""
    pages = [encode_question(question, lexicon) for question in questions]
    short, notes = filter_by_length([len(page.question) for page in pages], asked, "questions")
    pages = [pages[place] for place in short]
    kept, more = filter_by_length([len(page.passage) for page in pages], limit, "passages")
    return [pages[place] for place in kept], [note.replace("tokens", "words") for note in (*notes, *more)]


def collate_inputs(examples: Sequence[ReadingExample]) -> ReadingInputs:
    """Pages as tensors."""
    passages, questions = [page.passage for page in examples], [page.question for page in examples]
    lengths = [torch.tensor([len(row) for row in rows]) for rows in (passages, questions)]
    return ReadingInputs(pad(passages, PADDING), lengths[0], pad(questions, PADDING), lengths[1])


def collate_batch(examples: Sequence[ReadingExample]) -> ReadingBatch:
    """Pages with their answers, to learn from."""
    first, last = zip(*(page.span for page in examples), strict=True)
    return ReadingBatch(collate_inputs(examples), torch.tensor(first), torch.tensor(last))


def move_batch(batch: ReadingBatch, device: torch.device) -> ReadingBatch:
    """The same on a device."""
    pages = ReadingInputs(*(tensor.to(device) for tensor in batch.inputs))
    return ReadingBatch(pages, batch.first.to(device), batch.last.to(device))
