"""`regard caption`: what is in a photograph."""

from pathlib import Path

from regard.cli.predict import PredictionFlags, predict_for_task


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
