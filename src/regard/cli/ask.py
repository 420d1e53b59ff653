"""`regard ask`: a question about an image."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.opening import Opening, of_task
from regard.cli.predict import predict


def ask(
    photo: Path,
    question: str,
    *,
    run: Path,
    show: Path | None = None,
    opening: Annotated[Opening | None, Parameter(name="*")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Answer a question about an image.

    Parameters
    ----------
    photo
        The image.
    question
        What to ask, in quotes.
    run
        The run folder of an answerer.
    show
        Also write a picture of the regions that it looked at (.png, .svg, .pdf).
    as_json
        One JSON object, with the shares of the likeliest answers.
    """
    of_task(run, "vqa", "regard train vqa")
    predict(run, str(photo), question, show=show, opening=opening, as_json=as_json)
