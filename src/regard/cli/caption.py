"""`regard caption`: what is in a photograph."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.opening import Opening, of_task
from regard.cli.predict import predict


def caption(
    photo: Path,
    *,
    run: Path,
    show: Path | None = None,
    opening: Annotated[Opening | None, Parameter(name="*")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Say what is in a photograph.

    Parameters
    ----------
    photo
        The image.
    run
        The run folder of a captioner.
    show
        Also write a picture of where it looked for each word (.png, .svg, .pdf).
    as_json
        One JSON object, with the weights of each word.
    """
    of_task(run, "captioning", "regard train captioning")
    predict(run, str(photo), show=show, opening=opening, as_json=as_json)
