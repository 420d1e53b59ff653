"""`regard ask`: a question about an image."""

from pathlib import Path

from regard.cli.predict import How, predict_of


def ask(photo: Path, question: str, *, run: Path, how: How = None) -> None:
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
    predict_of("vqa", run, str(photo), question, how=how)
