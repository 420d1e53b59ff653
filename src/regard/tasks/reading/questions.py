"""Questions about passages, and data sets of them."""

from typing import NamedTuple

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


def is_in_passage(text: str, begin: int, passage: str) -> bool:
    """Return whether a text is in a passage where it is said to begin."""
    return begin >= 0 and text != "" and passage.startswith(text, begin)
