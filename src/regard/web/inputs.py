"""Ask a run about an image, a sound, a passage or a line of text."""

import io
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from regard.errors import wrong
from regard.tasks.captioning.predictor import CaptioningPredictor
from regard.tasks.digits.folder import convert_photo
from regard.tasks.digits.predictor import DigitsPredictor
from regard.tasks.images import open_photo
from regard.tasks.prediction import Prediction
from regard.tasks.reading.predictor import ReadingPredictor
from regard.tasks.reading.questions import PassageQuestion
from regard.tasks.reading.task import open_questions
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
    """How runs of a task are asked: what they take, whether with a question, and the function that predicts.

    `fill` returns what the boxes of the page hold when an example is shown. A task that `opens_data` needs its data to
    be loaded at all, so its runs are asked only if the data are generated.
    """

    takes: str
    needs_question: bool
    predict: Callable[[Any, RunInput, Limits], Prediction]
    fill: Callable[[Any, Prediction], Mapping[str, str]] = lambda predictor, prediction: {}
    opens_data: bool = False


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
    passage = decode_text(item, limits, "passage")
    return reader.build_prediction(PassageQuestion(item.question, passage, (), INPUT_NAME))


def decode_text(item: RunInput, limits: Limits, name: str) -> str:
    """Return the text that was sent."""
    try:
        text = item.content.decode("utf-8")
    except UnicodeDecodeError:
        raise wrong(name, "something that is not UTF-8", "a text", "paste the text itself") from None
    if len(text) > limits.passage:
        raise wrong(name, f"{len(text):,} characters", f"at most {limits.passage:,}", "cut it into parts")
    return text


def classify_digit(predictor: DigitsPredictor, item: RunInput, limits: Limits) -> Prediction:
    """Return the class of a picture."""
    photo = open_photo(item.content, INPUT_NAME, most=limits.pixels)
    return predictor.build_prediction(convert_photo(photo, predictor.side), INPUT_NAME)


def predict_text(predictor: Any, item: RunInput, limits: Limits) -> Prediction:
    """Return the prediction for a line of text: a story, letters, numbers, or the number of an item."""
    prediction: Prediction = predictor.predict([decode_text(item, limits, "item")])
    return prediction


def fill_passage(reader: ReadingPredictor, prediction: Prediction) -> dict[str, str]:
    """Return the passage and the question of the example."""
    first = next(iter(open_questions(reader.config.data).tests.values()))[0]
    return {"passage": first.passage, "question": first.text}


def fill_story(predictor: Any, prediction: Prediction) -> dict[str, str]:
    """Return the story of the example."""
    facts = " ".join(f"{fact}." for fact in prediction.values["facts"])
    return {"asked": f"{facts} {prediction.values['question']}?"}


def fill_numbers(predictor: Any, prediction: Prediction) -> dict[str, str]:
    """Return the inputs of the example."""
    return {"asked": " ".join(f"{number:g}" for number in prediction.values["inputs"].values())}


INPUT_KINDS: Mapping[str, InputKind] = {
    "captioning": InputKind("image", False, caption_image),
    "vqa": InputKind("image", True, answer_question, lambda _, found: {"question": str(found.values["question"])}),
    "speech": InputKind("sound", False, transcribe_sound),
    "reading": InputKind("passage", True, find_answer, fill_passage),
    "memory": InputKind("text", False, predict_text, fill_story, True),
    "inversion": InputKind("text", False, predict_text, lambda _, found: {"asked": str(found.values["source"])}, True),
    "regression": InputKind("text", False, predict_text, fill_numbers, True),
    "next-vector": InputKind(
        "text", False, predict_text, lambda _, found: {"asked": str(found.values["sequence"])}, True
    ),
    "digits": InputKind("image", False, classify_digit, opens_data=True),
}
