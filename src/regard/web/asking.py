"""Asking a run about something that is not a text to translate: an image, a sound, a passage."""

import io
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from regard.errors import wrong
from regard.tasks.captioning.predictor import Captioner
from regard.tasks.images import open_photo
from regard.tasks.predicting import Prediction
from regard.tasks.reading.predictor import ReadingPredictor
from regard.tasks.reading.questions import Question
from regard.tasks.speech.predictor import SpeechPredictor
from regard.tasks.speech.sound import decoded
from regard.tasks.vqa.predictor import Oracle
from regard.web.limits import Limits

GIVEN = "what was given"  # files have no names here: a name says nothing, and might be a path


class Item(NamedTuple):
    """What somebody asks about: the bytes of a file, and a question, empty where there is none."""

    content: bytes
    question: str


class Way(NamedTuple):
    """How runs of a task are asked: what they take, whether with a question, and how it is read."""

    takes: str
    questioned: bool
    ask: Callable[[Any, Item, Limits], Prediction]


def caption(captioner: Captioner, item: Item, limits: Limits) -> Prediction:
    return captioner.caption(open_photo(item.content, GIVEN, most=limits.pixels), GIVEN)


def answer(oracle: Oracle, item: Item, limits: Limits) -> Prediction:
    return oracle.answered(open_photo(item.content, GIVEN, most=limits.pixels), item.question)


def transcribe(listener: SpeechPredictor, item: Item, limits: Limits) -> Prediction:
    rate = listener.config.features.rate
    sound = decoded(io.BytesIO(item.content), GIVEN, rate, longest=limits.listening)
    return listener.prediction(sound.samples, GIVEN, sound.notes)


def find(reader: ReadingPredictor, item: Item, limits: Limits) -> Prediction:
    try:
        passage = item.content.decode("utf-8")
    except UnicodeDecodeError:
        raise wrong("passage", "something that is no UTF-8", "a text", "paste the text itself") from None
    if len(passage) > limits.passage:
        raise wrong("passage", f"{len(passage):,} characters", f"at most {limits.passage:,}", "cut it into parts")
    return reader.prediction(Question(item.question, passage, (), GIVEN))


WAYS: Mapping[str, Way] = {
    "captioning": Way("image", False, caption),
    "vqa": Way("image", True, answer),
    "speech": Way("sound", False, transcribe),
    "reading": Way("passage", True, find),
}
