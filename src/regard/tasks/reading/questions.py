"""Questions about passages, and data sets of them."""

from typing import NamedTuple

from regard.errors import wrong
from regard.tasks.data.dataset import Dataset


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

    def to_bytes(self) -> bytes:
        """Return the content, for a fingerprint."""
        return f"{self.text}\t{self.passage}\t{self.answers}\n".encode()


ReadingDataset = Dataset[PassageQuestion]


def check_answers(question: PassageQuestion) -> PassageQuestion:
    """Return the question itself; raise if an answer is not in its passage."""
    for answer in question.answers:
        there = question.passage[answer.begin : answer.begin + len(answer.text)] if answer.begin >= 0 else ""
        if not answer.text or there != answer.text:
            got = f"{answer.text!r} at character {answer.begin}, where the passage has {there!r}"
            raise wrong(f"answer of question {question.name}", got, "words of the passage", "correct answer_start")
    return question
