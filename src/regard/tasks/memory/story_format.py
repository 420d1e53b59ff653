"""Stories as token ids: facts, a question, its answer, and the facts that the answer follows from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch

from regard.errors import wrong
from regard.tasks.data import pad
from regard.tasks.data.words import normalize_words
from regard.tasks.tensor_task import DataSplits, Tensors

SHOWN_WORDS = 60  # words of the stories that a message names


class Story(NamedTuple):
    """Facts in their order, a question, its answer, and the facts that it follows from, first things first."""

    facts: list[str]
    question: str
    answer: str
    support: list[int]


@dataclass(frozen=True)
class StoryFormat:
    """The words of stories, and the largest numbers of words in a sentence, facts in a story, and facts needed."""

    words: tuple[str, ...]  # the first is padding
    longest: int
    facts: int
    needed: int

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def to_tensors(self, stories: Sequence[Story]) -> Tensors:
        """Return facts as token ids, the latest first; the question; the answer; and needed facts, −1 for none."""
        facts = torch.zeros(len(stories), self.facts, self.longest, dtype=torch.int64)
        support = torch.full((len(stories), self.needed), -1)
        for row, one in enumerate(stories):
            facts[row, : len(one.facts)] = pad([self.encode_sentence(fact) for fact in one.facts[::-1]], 0)
            support[row, : len(one.support)] = torch.tensor([len(one.facts) - 1 - place for place in one.support])
        questions = pad([self.encode_sentence(one.question) for one in stories], 0)
        return facts, questions, torch.tensor([self.word_ids[one.answer] for one in stories]), support

    def encode_sentence(self, sentence: str) -> list[int]:
        """Return the word ids of a sentence, padded to the length of the longest."""
        words = normalize_words(sentence).split()
        unknown = next((word for word in words if word not in self.word_ids), None)
        if unknown is not None:
            known = [word for word in self.words[1:] if "," not in word]
            named = ", ".join(known[:SHOWN_WORDS]) + (", …" if len(known) > SHOWN_WORDS else "")
            raise wrong("item", repr(unknown), f"words of the stories: {named}", "write one of these")
        if not 1 <= len(words) <= self.longest:
            fix = "write 'anna walks to harbor', say"
            raise wrong("item", repr(sentence), f"1 to {self.longest} words in a sentence", fix)
        return [self.word_ids[word] for word in words] + [0] * (self.longest - len(words))

    def parse_story(self, text: str) -> tuple[Story, Tensors]:
        """Parse a story: facts with a full stop behind each, then a question."""
        sentences = [part.strip() for part in text.replace("?", "?.").split(".") if part.strip()]
        if len(sentences) < 2 or not sentences[-1].endswith("?"):
            fix = "write 'anna walks to harbor. where is anna?', say"
            raise wrong("item", repr(text), "facts, each with a full stop, and a question", fix)
        if len(sentences) - 1 > self.facts:
            told = f"{len(sentences) - 1} facts"
            raise wrong("item", told, f"at most {self.facts}, as in training", "leave some out")
        one = Story(sentences[:-1], sentences[-1].rstrip("?"), "", [])
        return one, self.to_tensors([one._replace(answer=self.words[1])])


@dataclass(frozen=True, slots=True, kw_only=True)
class StorySplits(DataSplits):
    """Stories with their format, and one that was held out, to show."""

    form: StoryFormat
    example: Story
