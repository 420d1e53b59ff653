"""Predictions of a trained reader."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from regard.datasets.text import clean, decode_text
from regard.errors import wrong
from regard.inspect.draw.words import Language, localize
from regard.inspect.observe import observe
from regard.inspect.recording import Recording
from regard.tasks.data.dataset import select_held_out
from regard.tasks.data.text_files import check_plain_file, locate_data, read_decompressed
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction, no_attention_error
from regard.tasks.reading.answers import PredictedAnswer, answer_questions
from regard.tasks.reading.config import ReadingConfig
from regard.tasks.reading.examples import ReadingExample, encode_question
from regard.tasks.reading.fact_language import LANGUAGES
from regard.tasks.reading.lengths import ANSWER
from regard.tasks.reading.lexicon import Lexicon
from regard.tasks.reading.metrics import compute_metrics, compute_sums
from regard.tasks.reading.model import SpanReader
from regard.tasks.reading.questions import PassageQuestion
from regard.tasks.reading.squad import join_articles
from regard.tasks.reading.squad_file import read_articles
from regard.tasks.reading.task import ReadingTask, open_questions

LONGEST = 5000  # words of a passage: more would take minutes
PASSAGE_SITE, QUESTION_SITE = "passage to question", "question to passage"  # the two directions of BiDAF
AROUND = 12  # words beside the answer that are shown


TITLE = "attention of the words around the answer over the question"


class ReadingPredictor:
    """Evaluates a reader, and answers one question."""

    def __init__(self, config: ReadingConfig, lexicon: Lexicon, model: SpanReader, run: Path | None = None) -> None:
        self.config, self.lexicon, self.model, self.run = config, lexicon, model, run

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        return {name: self.evaluate_questions(questions) for name, questions in self.open_held_out(data, split).items()}

    def open_held_out(self, data: str | None, split: HeldOutSplit) -> Mapping[str, Sequence[PassageQuestion]]:
        """Return what the run held out, or other data of its kind; another file whole, as it was not trained on."""
        own = self.config.data
        data = data or own.questions
        path = None if data in (*LANGUAGES, own.questions) else locate_data(Path(data)).resolve()
        if path is not None and path.is_file() and path != Path(own.questions):
            return {path.name: join_articles(read_articles(path)[0])}
        questions = open_questions(replace(own, questions=data))
        return select_held_out(questions, split, "questions", self.run if data == own.questions else None)

    def evaluate_questions(self, questions: Sequence[PassageQuestion]) -> EvaluationReport:
        """Return exact match and F1 as the authors of SQuAD compute them."""
        found = self.answer_examples([encode_question(question, self.lexicon) for question in questions])
        right = [[one.text for one in question.answers] for question in questions]
        metrics = compute_metrics(compute_sums([one.text for one in found], right))
        return EvaluationReport(len(questions), metrics, [ReadingTask.units])

    def predict(self, words: Sequence[str]) -> Prediction:
        """Answer a question about the passage in a file; a held-out question, if nothing is named."""
        if not words:
            return self.build_prediction(next(iter(open_questions(self.config.data).tests.values()))[0])
        if len(words) != 2:
            fix = 'write the question in quotes: passage.txt "who …?"'
            raise wrong("question", f"{len(words)} names", "a file with the passage and a question", fix)
        return self.build_prediction(
            PassageQuestion(clean(words[1], "question"), read_passage(Path(words[0])), (), words[0])
        )

    def build_prediction(self, question: PassageQuestion) -> Prediction:
        """Answer one question."""
        self.check_question(question)
        page = encode_question(question, self.lexicon)
        with observe(self.model, sites="flow*", vectors=True) as seen:
            found = self.answer_examples([page], attention=True)[0]
        values = {
            "question": question.text,
            "answer": found.text,
            "begin": page.words[found.first].begin,
            "probability": found.probability,
        }
        return Prediction(
            found.text,
            values,
            partial(draw_attention, page, found),
            build_map(page, found),
            build_recording(page, seen),
        )

    def check_question(self, question: PassageQuestion) -> None:
        """Raise if there is nothing to read, nothing to answer, or too much."""
        passage, asked = len(self.lexicon.split(question.passage)), len(self.lexicon.split(question.text))
        if not passage:
            raise wrong("passage", f"{question.name} without a word", "some text", "check the file")
        if not asked:
            raise wrong("question", "no word", "some words", "write the question in quotes")
        if asked > self.config.learning.question:
            most = f"at most {self.config.learning.question}, the limit of this run"
            raise wrong("question", f"{asked} words", most, "ask in fewer words")
        if passage > LONGEST:
            raise wrong("passage", f"{passage} words", f"at most {LONGEST}", "cut it into parts")

    def answer_examples(self, examples: Sequence[ReadingExample], *, attention: bool = False) -> list[PredictedAnswer]:
        """Answer encoded questions."""
        with torch.inference_mode():
            return answer_questions(self.model, examples, self.config.reader.longest or ANSWER, attention=attention)


def read_passage(path: Path) -> str:
    """Return the text of a file."""
    if not path.is_file():
        check_plain_file(path, "passage")
        raise wrong("passage", f"no file {path}", "a text file", "check the path")
    return decode_text(read_decompressed(path), path.name)


def build_recording(example: ReadingExample, seen: Recording) -> Recording | None:
    """Return both directions: the question over the passage, and every word of the passage over the question."""
    if len(seen) != 2:
        return None
    words = [word.text for word in example.words]
    asked, answered = seen.values()  # in the order in which AttentionFlow computes them
    recording = Recording({QUESTION_SITE: answered, PASSAGE_SITE: asked}, notes=seen.notes)
    recording.label([example.source.text], words, sites=QUESTION_SITE)
    recording.label(words, example.asked, sites=PASSAGE_SITE)
    return recording


def build_map(example: ReadingExample, found: PredictedAnswer) -> LabeledWeights | None:
    """Return the attention of the words around the answer over the question."""
    if found.weights is None:
        return None
    begin, end = max(0, found.first - AROUND), min(len(example.words), found.last + AROUND + 1)
    weights = found.weights[begin:end].T.tolist()
    return LabeledWeights(weights, [word.text for word in example.words[begin:end]], example.asked, TITLE)


def draw_attention(example: ReadingExample, found: PredictedAnswer, title: str = "", language: Language = "en") -> Any:
    """Draw the attention of the words around the answer."""
    part = build_map(example, found)
    if part is None:
        raise no_attention_error("reader", "its question", "bidaf")
    answer = localize("answer: {}", language).format(found.text)
    return part.draw("\n".join(filter(None, (title, answer))), language, ("question", "passage"))
