"""`regard predict`: ask a run about one thing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from regard.cli.opening import Opening, of_task
from regard.cli.output import say, say_json
from regard.cli.show import picture
from regard.datasets.cleaning import check_text


@dataclass
class Asking(Opening):
    """How a run is asked, whatever the task."""

    show: Path | None = None
    "Also write a picture of where the model looked (.png, .svg, .pdf)."
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False
    "One JSON object, with all that is known about the answer."


How = Annotated[Asking | None, Parameter(name="*")]


def predict(run: Path, *item: str, how: How = None) -> None:
    """Say what a trained model makes of one thing.

    Parameters
    ----------
    run
        The run folder.
    item
        What to ask about, as the task reads it: a text, numbers, a file, a file and a question. An example of the
        held-out data where nothing is named.
    """
    how = how or Asking()
    for word in item:
        if not Path(word).exists():
            check_text(word, "item")
    prediction = how.predictor(run).predict(item)
    console = Console(highlight=False, soft_wrap=True)
    if how.as_json:
        say_json(prediction.values)
    else:
        say(prediction.text)
    if how.show is not None:
        picture(prediction, how.show)
        if not how.as_json:
            console.print(f"picture: {how.show}", markup=False)


def predict_of(task: str, run: Path, *item: str, how: Asking | None) -> None:
    """The same for a run that must be one of this task."""
    of_task(run, task, f"regard train {task}")
    predict(run, *item, how=how)
