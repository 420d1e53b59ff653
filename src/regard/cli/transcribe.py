"""`regard transcribe`: what is said in a sound file."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.opening import Opening, of_task
from regard.cli.predict import predict


def transcribe(
    sound: Path,
    *,
    run: Path,
    show: Path | None = None,
    opening: Annotated[Opening | None, Parameter(name="*")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Write down what is said in a sound file. Another rate and several channels are converted.

    Parameters
    ----------
    sound
        A sound file: wav, flac, ogg or mp3.
    run
        The folder of a run of the task speech.
    show
        Also write a picture of where the model listened (.png, .svg, .pdf).
    as_json
        One JSON object.
    """
    of_task(run, "speech", "regard train speech")
    predict(run, str(sound), show=show, opening=opening, as_json=as_json)
