"""`regard predict`: ask a run about one thing."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from regard.cli.opening import Opening
from regard.cli.show import picture


def predict(
    run: Path,
    *item: str,
    show: Path | None = None,
    opening: Annotated[Opening | None, Parameter(name="*")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Say what a trained model makes of one thing.

    Parameters
    ----------
    run
        The run folder.
    item
        What to ask about, as the task reads it: a text, numbers, a file, a file and a question. An example of the
        held-out data where nothing is named.
    show
        Also write a picture of where the model looked (.png, .svg, .pdf).
    as_json
        One JSON object.
    """
    prediction = (opening or Opening()).predictor(run).predict(item)
    console = Console(highlight=False, soft_wrap=True)
    if as_json:
        print(json.dumps(prediction.values, ensure_ascii=False))
    else:
        console.print(prediction.text, markup=False)
    if show is not None:
        picture(prediction, show)
        if not as_json:
            console.print(f"picture: {show}", markup=False)
