"""Questions in numbers, and batches of them as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.tasks.data import fitting, pad
from regard.tasks.reading.lexicon import PADDING, Lexicon
from regard.tasks.reading.model import Pages
from regard.tasks.reading.questions import Answer, Question
from regard.tasks.reading.words import Word, words_of


class Page(NamedTuple):
    """A question in numbers, the words of its passage, and the first and last word of its first answer."""

    passage: list[int]
    question: list[int]
    words: list[Word]
    span: tuple[int, int]
    source: Question

    def answer(self, first: int, last: int) -> str:
        """The text from one word to another."""
        return self.source.passage[self.words[first].begin : self.words[last].end]


class Batch(NamedTuple):
    """Pages side by side, and where their answers begin and end."""

    pages: Pages
    first: Tensor
    last: Tensor


def page_of(question: Question, lexicon: Lexicon) -> Page:
    """A question as a model reads it. A passage or question of nothing but blanks has one word, which is padding."""
    words, asked = words_of(question.passage), words_of(question.text)
    return Page(
        lexicon.numbers(word.text for word in words) or [PADDING],
        lexicon.numbers(word.text for word in asked) or [PADDING],
        words,
        span_of(words, question.answers[0]) if question.answers else (0, 0),
        question,
    )


def span_of(words: Sequence[Word], answer: Answer) -> tuple[int, int]:
    """The first and last of the words that share a character with the answer.

    >>> span_of(words_of("a small dog barks"), Answer("mall dog", 3))
    (1, 2)
    """
    end = answer.begin + len(answer.text)
    inside = [place for place, word in enumerate(words) if word.begin < end and word.end > answer.begin]
    return (inside[0], inside[-1]) if inside else (0, 0)


def pages_of(questions: Sequence[Question], lexicon: Lexicon, limit: int, asked: int) -> tuple[list[Page], list[str]]:
    """Those whose passage and question are short enough to learn from, and a note on the others."""
    pages = [page_of(question, lexicon) for question in questions]
    short, notes = fitting([len(page.question) for page in pages], asked, "questions")
    pages = [pages[place] for place in short]
    kept, more = fitting([len(page.passage) for page in pages], limit, "passages")
    return [pages[place] for place in kept], [note.replace("tokens", "words") for note in (*notes, *more)]


def side_by_side(pages: Sequence[Page]) -> Pages:
    """Pages as tensors."""
    passages, questions = [page.passage for page in pages], [page.question for page in pages]
    lengths = [torch.tensor([len(row) for row in rows]) for rows in (passages, questions)]
    return Pages(pad(passages, PADDING), lengths[0], pad(questions, PADDING), lengths[1])


def batch_of(pages: Sequence[Page]) -> Batch:
    """Pages with their answers, to learn from."""
    first, last = zip(*(page.span for page in pages), strict=True)
    return Batch(side_by_side(pages), torch.tensor(first), torch.tensor(last))


def placed(batch: Batch, device: torch.device) -> Batch:
    """The same on a device."""
    pages = Pages(*(tensor.to(device) for tensor in batch.pages))
    return Batch(pages, batch.first.to(device), batch.last.to(device))
