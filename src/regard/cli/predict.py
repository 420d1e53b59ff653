"""`regard predict`: ask a run about one thing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from regard.cli.output import print_json, print_text
from regard.cli.runs import LoadOptions, check_task
from regard.cli.show import save_picture
from regard.datasets.text import check_text


@dataclass
class PredictionOptions(LoadOptions):
    """How a run is asked, whatever the task."""

    show: Path | None = None
    "Also write a picture of where the model looked (.png, .svg, .pdf)."
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False
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
    console = Console(highlight=False, soft_wrap=True)
    if options.as_json:
        print_json(prediction.values)
    else:
        print_text(prediction.text)
    if options.show is not None:
        save_picture(prediction, options.show)
        if not options.as_json:
            console.print(f"picture: {options.show}", markup=False)


def predict_for_task(task: str, run: Path, *item: str, options: PredictionOptions | None) -> None:
    """The same for a run that must be one of this task."""
    check_task(run, task, f"regard train {task}")
    predict(run, *item, options=options)
