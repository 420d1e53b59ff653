"""Questions about passages: what every source of them has in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from regard.errors import wrong
from regard.tasks.data.fingerprints import digest
from regard.tasks.data.split_notes import describe_overlaps, describe_sizes


class Answer(NamedTuple):
    """Words of the passage, and the character that they begin with."""

    text: str
    begin: int


class PassageQuestion(NamedTuple):
    """A question, a passage that has the answer, and the answers that people gave."""

    text: str
    passage: str
    answers: tuple[Answer, ...]
    name: str


@runtime_checkable
class ReadingDataset(Protocol):
    """Questions to learn from, and questions that are never learned from."""

    @property
    def validation(self) -> Sequence[PassageQuestion]: ...

    @property
    def tests(self) -> Mapping[str, Sequence[PassageQuestion]]: ...

    @property
    def notes(self) -> Sequence[str]: ...

    @property
    def endless(self) -> bool: ...

    def load_training(self, epoch: int) -> Sequence[PassageQuestion]: ...


@dataclass(frozen=True)
class SquadDataset:
    """Questions that were read from files: the same in every epoch."""

    train: Sequence[PassageQuestion]
    validation: Sequence[PassageQuestion]
    tests: Mapping[str, Sequence[PassageQuestion]]
    notes: Sequence[str] = ()
    endless: bool = False

    def load_training(self, epoch: int) -> Sequence[PassageQuestion]:
        return self.train


def check_answers(question: PassageQuestion) -> PassageQuestion:
    """The question itself, or a sentence on the answer that is not in its passage."""
    for answer in question.answers:
        there = question.passage[answer.begin : answer.begin + len(answer.text)] if answer.begin >= 0 else ""
        if not answer.text or there != answer.text:
            got = f"{answer.text!r} at character {answer.begin}, where the passage has {there!r}"
            raise wrong(f"answer of question {question.name}", got, "words of the passage", "correct answer_start")
    return question


def describe_dataset(questions: ReadingDataset) -> list[str]:
    """How many questions each part has, and how many passages of files are in two of them."""
    learned, tests = questions.load_training(0), questions.tests
    counts = {name: len(some) for name, some in tests.items()}
    notes = [describe_sizes("questions", len(learned), len(questions.validation), counts, endless=questions.endless)]
    if not questions.endless:
        held_out = {"validation": collect_passages(questions.validation)} | {
            n: collect_passages(some) for n, some in tests.items()
        }
        notes += describe_overlaps("passages", collect_passages(learned), held_out)
    return notes


def collect_passages(questions: Sequence[PassageQuestion]) -> set[str]:
    return {question.passage for question in questions}


def compute_fingerprint(questions: ReadingDataset) -> str:
    """A short name for the questions: another one means that a resumed run would not go on as it began."""
    everything = (*questions.load_training(0), *questions.validation)
    return digest(f"{one.text}\t{one.passage}\t{one.answers}\n".encode() for one in everything)
