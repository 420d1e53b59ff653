"""A reader that was trained, ready to be asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from regard.datasets.cleaning import clean, decoded
from regard.errors import wrong
from regard.inspect.recording import Recording
from regard.tasks.data.fingerprints import check_held_out
from regard.tasks.data.reading import check_file, located, unzipped
from regard.tasks.predicting import Map, Prediction, Report, Split, nowhere, trained
from regard.tasks.reading.answering import Answered, answer
from regard.tasks.reading.config import FACTS, ReadingConfig
from regard.tasks.reading.lexicon import Lexicon
from regard.tasks.reading.model import SpanReader
from regard.tasks.reading.pages import Page, page_of
from regard.tasks.reading.questions import Question, fingerprint
from regard.tasks.reading.scoring import scores, sums
from regard.tasks.reading.squad import joined, read_articles
from regard.tasks.reading.task import open_questions, word_table
from regard.tasks.reading.words import words_of

LONGEST = 5000  # words of a passage: more would take minutes
AROUND = 12  # words beside the answer that are shown


class ReadingPredictor:
    """Says how good a reader is, and what it answers to one question."""

    def __init__(self, config: ReadingConfig, lexicon: Lexicon, model: SpanReader, run: Path | None = None) -> None:
        self.config, self.lexicon, self.model, self.run = config, lexicon, model, run

    def evaluate(self, data: str | None, split: Split) -> dict[str, Report]:
        return {name: self.report(some) for name, some in self.held_out(data, split).items()}

    def held_out(self, data: str | None, split: Split) -> Mapping[str, Sequence[Question]]:
        """What the run held out, or other data of its kind; all of another file, for none of it was learned from."""
        own = self.config.data
        data = data or own.questions
        place = None if data in (FACTS, own.questions) else located(Path(data)).resolve()
        if place is not None and place.is_file() and place != Path(own.questions):
            return {place.name: joined(read_articles(place)[0])}
        questions = open_questions(replace(own, questions=data))
        if self.run is not None and data == own.questions and not questions.endless:
            check_held_out("questions", fingerprint(questions), self.run)
        return questions.tests if split == "test" else {"validation": questions.validation}

    def report(self, questions: Sequence[Question]) -> Report:
        """Exact match and F1 as the authors of SQuAD compute them."""
        found = self.read([page_of(question, self.lexicon) for question in questions])
        right = [[one.text for one in question.answers] for question in questions]
        metrics = scores(sums([one.text for one in found], right))
        return Report(len(questions), metrics, ["em, f1: of SQuAD 1.1, in percent"])

    def predict(self, words: Sequence[str]) -> Prediction:
        """The answer to a question about the passage in a file; to one that was held out where nothing is named."""
        if not words:
            return self.prediction(next(iter(open_questions(self.config.data).tests.values()))[0])
        if len(words) != 2:
            fix = 'write the question in quotes: passage.txt "who …?"'
            raise wrong("question", f"{len(words)} names", "a file with the passage and a question", fix)
        return self.prediction(Question(clean(words[1], "question"), passage_in(Path(words[0])), (), words[0]))

    def prediction(self, question: Question) -> Prediction:
        self.check(question)
        page = page_of(question, self.lexicon)
        found = self.read([page], attention=True)[0]
        values = {
            "question": question.text,
            "answer": found.text,
            "begin": page.words[found.first].begin,
            "probability": found.probability,
        }
        return Prediction(found.text, values, lambda: drawn(page, found), shown(page, found), looked(page, found))

    def check(self, question: Question) -> None:
        """Raises where there is nothing to read, nothing to answer, or too much."""
        passage, asked = len(words_of(question.passage)), len(words_of(question.text))
        if not passage:
            raise wrong("passage", f"{question.name} without a word", "some text", "check the file")
        if not asked:
            raise wrong("question", "no word", "some words", "write the question in quotes")
        if asked > self.config.learning.question:
            most = f"at most {self.config.learning.question}, the limit of this run"
            raise wrong("question", f"{asked} words", most, "ask in fewer words")
        if passage > LONGEST:
            raise wrong("passage", f"{passage} words", f"at most {LONGEST}", "cut it into parts")

    def read(self, pages: Sequence[Page], *, attention: bool = False) -> list[Answered]:
        with torch.inference_mode():
            return answer(self.model, pages, self.config.reader.longest, attention=attention)


def passage_in(path: Path) -> str:
    """The text of a file."""
    if not path.is_file():
        check_file(path, "passage")
        raise wrong("passage", f"no file {path}", "a text file", "check the path")
    return decoded(unzipped(path), path.name)


def looked(page: Page, found: Answered) -> Recording | None:
    """What every word of the passage read in the question."""
    if found.weights is None:
        return None
    asked = [word.text for word in words_of(page.source.text)]
    return Recording.of({"attention": found.weights}, queries=[word.text for word in page.words], keys=asked)


def shown(page: Page, found: Answered) -> Map | None:
    """What the words around the answer read in the question."""
    if found.weights is None:
        return None
    begin, end = max(0, found.first - AROUND), min(len(page.words), found.last + AROUND + 1)
    asked = [word.text for word in words_of(page.source.text)]
    weights = found.weights[begin:end].T.tolist()
    return Map(weights, [word.text for word in page.words[begin:end]], asked)


def drawn(page: Page, found: Answered) -> Any:
    """The same as a figure."""
    part = shown(page, found)
    if part is None:
        raise nowhere("reader", "its question", "bidaf")
    return part.drawn(f"answer: {found.text}")


def load(config: ReadingConfig, run: Path, weights: Path | None = None) -> ReadingPredictor:
    """The reader of a run folder, ready to be asked."""
    lexicon = Lexicon.load(run)

    def build() -> SpanReader:
        return SpanReader(config.reader, word_table(config, lexicon, None))

    return ReadingPredictor(config, lexicon, cast(SpanReader, trained(build, config.training, run, weights)), run)
