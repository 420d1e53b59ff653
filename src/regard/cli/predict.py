"""`regard predict`, and the same for one task: `answer`, `ask`, `caption`, `transcribe`."""

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.progress import track

from regard.cli.items import STDIN, Item, collect_items
from regard.cli.output import JsonFlag, open_console, print_error, print_json, print_text, redirect_output
from regard.cli.runs import LoadOptions, RunFolder, check_task
from regard.datasets.locations import is_path
from regard.datasets.text import check_text
from regard.errors import InputError, wrong

if TYPE_CHECKING:
    from regard.tasks.prediction import Prediction, Predictor


@dataclass
class PredictionOptions(LoadOptions):
    """Options of a prediction, for every task."""

    show: Path | None = None
    "Also write a picture of where the model looked (.png, .svg, .pdf); of several items, a folder for their pictures."
    items: Annotated[Path | None, Parameter(name="--list")] = None
    "A file with an item in each line, a tab before its question; - for standard input."
    output: Path | None = None
    "Write the answers here: a line each, item and answer with a tab between; .jsonl: a JSON object each."
    as_json: JsonFlag = False
    "One JSON object for each item, with all that is known about the answer."


@dataclass
class ForecastOptions(PredictionOptions):
    """Options of a forecast."""

    steps: int | None = None
    "How many steps of a series to forecast; one if it is not given."


PredictionFlags = Annotated[PredictionOptions | None, Parameter(name="*")]
ForecastFlags = Annotated[ForecastOptions | None, Parameter(name="*")]


def predict(run: RunFolder, *item: str, options: PredictionFlags = None) -> None:
    """Say what a trained model makes of one thing, or of several files.

    Parameters
    ----------
    item
        A text, numbers, files, folders, or files and a question; an example of the held-out data if nothing is named.
    """
    options = options or PredictionOptions()
    predict_items(options.load_predictor, run, item, options)


def forecast(run: RunFolder, *item: str, options: ForecastFlags = None) -> None:
    """Forecast how a series goes on.

    Parameters
    ----------
    item
        A file of numbers, or several; an example of the held-out data if nothing is named.
    """
    options = options or ForecastOptions()
    steps = options.steps

    def load(run: Path) -> "Predictor":
        predictor: Any = options.load_predictor(run)
        forecaster: Predictor = predictor if steps is None else predictor.with_steps(steps)
        return forecaster

    predict_items(load, run, item, options)


def predict_items(
    load: "Callable[[Path], Predictor]", run: Path, item: Sequence[str], options: PredictionOptions
) -> None:
    """Load a run once the items are known to be readable, and answer them: one alone, or several in lines."""
    from regard.tasks import read_task_name

    items = collect_items(read_task_name(run), item, options.items)
    for word in {word for words in items for word in words}:
        check_text(word, "item")
    predictor = load(run)
    items = [row for words in items for row in expand_table(predictor, words)]
    if len(items) == 1 and options.items is None and options.output is None:
        predict_one(predictor, items[0], options)
    else:
        predict_all(predictor, items, options)


def expand_table(predictor: "Predictor", item: Item) -> list[Item]:
    """Return an item for each row if an item names CSV files and the task takes rows; else the item itself."""
    if item and hasattr(predictor, "read_items") and all(map(is_path, item)):
        return [row for word in item for row in predictor.read_items(Path(word))]
    return [item]


def predict_one(predictor: "Predictor", item: Item, options: PredictionOptions) -> None:
    """Print the answer to one item, and save its picture if one is asked for."""
    prediction = predictor.predict(item)
    if options.as_json:
        print_json(prediction.values)
    else:
        print_text(prediction.text)
    if options.show is not None:
        prediction.save(options.show)
        if not options.as_json:
            open_console().print(f"picture: {options.show}", markup=False)


def predict_all(predictor: "Predictor", items: Sequence[Item], options: PredictionOptions) -> None:
    """Write a line for each item. One that cannot be read gets a message, and the others are still answered."""
    as_json = options.as_json or (options.output is not None and options.output.suffix == ".jsonl")
    pictures = None if options.show is None else prepare_folder(options.show)
    failed, console = 0, open_console(errors=True)
    is_hidden = not console.is_terminal or (options.output is None and sys.stdout.isatty())
    with nullcontext() if options.output is None else redirect_output(options.output):
        for number, item in enumerate(track(items, "predicting", console=console, transient=True, disable=is_hidden)):
            try:
                prediction = predictor.predict(item)
                if pictures is not None:
                    prediction.save(pictures / name_picture(item, number))
            except (InputError, OSError) as error:
                failed += 1
                print_error(f"{' '.join(item)}: {error}")
                continue
            write_row(item, prediction, as_json)
            sys.stdout.flush()  # what is done stays, whatever comes next
    if failed:
        got = f"{failed} of {len(items)} without an answer"
        raise wrong("items", got, "an answer to each", "see the messages above")


def write_row(item: Item, prediction: "Prediction", as_json: bool) -> None:
    """Write the answer to one of several items."""
    if as_json:
        print_json({"item": list(item), **prediction.values})
    else:
        print_text("\t".join((*item, " ".join(prediction.text.split()))))


def prepare_folder(folder: Path) -> Path:
    """Return the folder for the pictures of several items, which is made if it is not there."""
    if folder.suffix or folder.is_file():
        fix = f"write --show {folder.with_suffix('')}"
        raise wrong("--show", folder, "a folder, because there are several items", fix)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def name_picture(item: Item, number: int) -> str:
    """Return the name of the picture of an item: its place, and the name of its file.

    >>> name_picture(("photos/cat.jpg", "what is it?"), 0)
    '0001-cat.png'
    """
    stem = Path(item[0]).stem[:40] if item and Path(item[0]).suffix else ""
    return f"{number + 1:04}-{stem}.png" if stem else f"{number + 1:04}.png"


def predict_for_task(task: str, run: Path, item: Sequence[str], options: PredictionOptions | None) -> None:
    """Predict with a run that must be one of this task, about something that was named."""
    check_task(run, task, f"regard train {task}")
    if not item and (options is None or options.items is None):
        fix = f"name some, or write --list FILE; {STDIN} for standard input"
        raise wrong("items", "none", "files, folders, or a list of them", fix)
    predict(run, *item, options=options)


Passages = Annotated[str, Parameter(help="Text files, UTF-8, or folders of them; and the question, in quotes.")]
Images = Annotated[str, Parameter(help="Images, or folders of them; and what to ask, in quotes.")]
Photos = Annotated[str, Parameter(help="Images, or folders of them.")]
Sounds = Annotated[str, Parameter(help="Sound files (wav, flac, ogg or mp3), or folders of them.")]


def answer(*passage_question: Passages, run: RunFolder, options: PredictionFlags = None) -> None:
    """Say which words of a passage answer a question; --show draws what they attend to in the question."""
    predict_for_task("reading", run, passage_question, options)


def ask(*photo_question: Images, run: RunFolder, options: PredictionFlags = None) -> None:
    """Answer a question about an image; --show draws the regions that it attends to."""
    predict_for_task("vqa", run, photo_question, options)


def caption(*photo: Photos, run: RunFolder, options: PredictionFlags = None) -> None:
    """Say what is in a photograph; --show draws the regions that each word attends to."""
    predict_for_task("captioning", run, photo, options)


def transcribe(*sound: Sounds, run: RunFolder, options: PredictionFlags = None) -> None:
    """Write down what is said in a sound file; --show draws the frames that each symbol attends to.

    Another rate and several channels are converted.
    """
    predict_for_task("speech", run, sound, options)
