"""Asking a run about something that is not a text to translate: an image, a sound, a passage."""

import io
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from regard.errors import wrong
from regard.tasks.captioning.predictor import CaptioningPredictor
from regard.tasks.images import open_photo
from regard.tasks.prediction import Prediction
from regard.tasks.reading.predictor import ReadingPredictor
from regard.tasks.reading.questions import PassageQuestion
from regard.tasks.speech.predictor import SpeechPredictor
from regard.tasks.speech.sound import decode_sound
from regard.tasks.vqa.predictor import VqaPredictor
from regard.web.limits import Limits

INPUT_NAME = "what was given"  # files have no names here: a name says nothing, and might be a path


class RunInput(NamedTuple):
    """What somebody asks about: the bytes of a file, and a question, empty where there is none."""

    content: bytes
    question: str


class InputKind(NamedTuple):
    """How runs of a task are asked: what they take, whether with a question, and how it is read."""

    takes: str
    needs_question: bool
    predict: Callable[[Any, RunInput, Limits], Prediction]


def caption_image(captioner: CaptioningPredictor, item: RunInput, limits: Limits) -> Prediction:
    return captioner.caption(open_photo(item.content, INPUT_NAME, most=limits.pixels), INPUT_NAME)


def answer_question(oracle: VqaPredictor, item: RunInput, limits: Limits) -> Prediction:
    return oracle.answer_question(open_photo(item.content, INPUT_NAME, most=limits.pixels), item.question)


def transcribe_sound(listener: SpeechPredictor, item: RunInput, limits: Limits) -> Prediction:
    rate = listener.config.features.rate
    sound = decode_sound(io.BytesIO(item.content), INPUT_NAME, rate, longest=limits.listening)
    return listener.predict_sound(sound.samples, INPUT_NAME, sound.notes)


def find_answer(reader: ReadingPredictor, item: RunInput, limits: Limits) -> Prediction:
    try:
        passage = item.content.decode("utf-8")
    except UnicodeDecodeError:
        raise wrong("passage", "something that is no UTF-8", "a text", "paste the text itself") from None
    if len(passage) > limits.passage:
        raise wrong("passage", f"{len(passage):,} characters", f"at most {limits.passage:,}", "cut it into parts")
    return reader.build_prediction(PassageQuestion(item.question, passage, (), INPUT_NAME))


INPUT_KINDS: Mapping[str, InputKind] = {
    "captioning": InputKind("image", False, caption_image),
    "vqa": InputKind("image", True, answer_question),
    "speech": InputKind("sound", False, transcribe_sound),
    "reading": InputKind("passage", True, find_answer),
}
