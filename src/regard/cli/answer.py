"""`regard answer`: the words of a passage that answer a question."""

from pathlib import Path

from regard.cli.predict import PredictionFlags, predict_for_task


def answer(passage: Path, question: str, *, run: Path, options: PredictionFlags = None) -> None:
    """Say which words of a passage answer a question; --show draws what they read in the question.

    Parameters
    ----------
    passage
        A text file, UTF-8.
    question
        The question, in quotes.
    run
        The folder of a run of the task reading.
    """
    predict_for_task("reading", run, str(passage), question, options=options)
