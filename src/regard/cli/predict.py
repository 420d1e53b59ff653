"""`regard predict`, and the same for one task: `answer`, `ask`, `caption`, `transcribe`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.output import JsonFlag, open_console, print_json, print_text
from regard.cli.runs import LoadOptions, check_task
from regard.cli.show import save_picture
from regard.datasets.text import check_text


@dataclass
class PredictionOptions(LoadOptions):
    """Options of a prediction, for every task."""

    show: Path | None = None
    "Also write a picture of where the model looked (.png, .svg, .pdf)."
    as_json: JsonFlag = False
    "One JSON object, with all that is known about the answer."


PredictionFlags = Annotated[PredictionOptions | None, Parameter(name="*")]


def predict(run: Path, *item: str, options: PredictionFlags = None) -> None:
    """Say what a trained model makes of one thing.

    Parameters
    ----------
    run
        The run folder.
    item
        What to ask about, as the task reads it: a text, numbers, a file, a file and a question. An example of the
        held-out data where nothing is named.
    """
    options = options or PredictionOptions()
    for word in item:
        if not Path(word).exists():
            check_text(word, "item")
    prediction = options.load_predictor(run).predict(item)
    if options.as_json:
        print_json(prediction.values)
    else:
        print_text(prediction.text)
    if options.show is not None:
        save_picture(prediction, options.show)
        if not options.as_json:
            open_console().print(f"picture: {options.show}", markup=False)


def predict_for_task(task: str, run: Path, *item: str, options: PredictionOptions | None) -> None:
    """Predict with a run that must be one of this task."""
    check_task(run, task, f"regard train {task}")
    predict(run, *item, options=options)


def answer(passage: Path, question: str, *, run: Path, options: PredictionFlags = None) -> None:
    """Say which words of a passage answer a question; --show draws what they read in the question.

    Parameters
    ----------
    passage
        A text file, UTF-8.
    question
        The question, in quotes.
    run
        The folder of a run of the task reading.
    """
    predict_for_task("reading", run, str(passage), question, options=options)


def ask(photo: Path, question: str, *, run: Path, options: PredictionFlags = None) -> None:
    """Answer a question about an image; --show draws the regions that it looked at.

    Parameters
    ----------
    photo
        The image.
    question
        What to ask, in quotes.
    run
        The folder of a run of the task vqa.
    """
    predict_for_task("vqa", run, str(photo), question, options=options)


def caption(photo: Path, *, run: Path, options: PredictionFlags = None) -> None:
    """Say what is in a photograph; --show draws where it looked for each word.

    Parameters
    ----------
    photo
        The image.
    run
        The folder of a run of the task captioning.
    """
    predict_for_task("captioning", run, str(photo), options=options)


def transcribe(sound: Path, *, run: Path, options: PredictionFlags = None) -> None:
    """Write down what is said in a sound file; --show draws where it listened for each symbol.

    Another rate and several channels are converted.

    Parameters
    ----------
    sound
        A sound file: wav, flac, ogg or mp3.
    run
        The folder of a run of the task speech.
    """
    predict_for_task("speech", run, str(sound), options=options)
