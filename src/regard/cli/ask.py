"""`regard ask`: a question about an image."""

from pathlib import Path

from regard.cli.predict import PredictionFlags, predict_for_task


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
