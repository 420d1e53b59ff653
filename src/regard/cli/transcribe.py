"""`regard transcribe`: what is said in a sound file."""

from pathlib import Path

from regard.cli.predict import PredictionFlags, predict_for_task


def transcribe(sound: Path, *, run: Path, options: PredictionFlags = None) -> None:
    """Write down what is said in a sound file; --show draws where it listened for each symbol.

    Another rate and several channels are converted.

    Parameters
    ----------
    sound
        A sound file: wav, flac, ogg or mp3.
    run
        The folder of a run of the task speech.
    """
    predict_for_task("speech", run, str(sound), options=options)
