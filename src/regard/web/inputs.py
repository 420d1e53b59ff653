"""Ask a run about an image, a sound or a passage."""

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

INPUT_NAME = "what was given"  # uploads have no names here: a name might be a path


class RunInput(NamedTuple):
    """The bytes of a file, and a question about it, which may be empty."""

    content: bytes
    question: str


class InputKind(NamedTuple):
    """How runs of a task are asked: what they take, whether with a question, and the function that predicts."""

    takes: str
    needs_question: bool
    predict: Callable[[Any, RunInput, Limits], Prediction]


def caption_image(captioner: CaptioningPredictor, item: RunInput, limits: Limits) -> Prediction:
    """Return a caption of an image."""
    return captioner.caption(open_photo(item.content, INPUT_NAME, most=limits.pixels), INPUT_NAME)


def answer_question(predictor: VqaPredictor, item: RunInput, limits: Limits) -> Prediction:
    """Return the answer to a question about an image."""
    return predictor.answer_question(open_photo(item.content, INPUT_NAME, most=limits.pixels), item.question)


def transcribe_sound(recognizer: SpeechPredictor, item: RunInput, limits: Limits) -> Prediction:
    """Return a transcript of a sound."""
    rate = recognizer.config.features.rate
    sound = decode_sound(io.BytesIO(item.content), INPUT_NAME, rate, longest=limits.listening)
    return recognizer.predict_sound(sound.samples, INPUT_NAME, sound.notes)


def find_answer(reader: ReadingPredictor, item: RunInput, limits: Limits) -> Prediction:
    """Return the answer to a question from a passage."""
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
