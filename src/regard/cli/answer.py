"""`regard answer`: the words of a passage that answer a question."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.opening import Opening, of_task
from regard.cli.predict import predict


def answer(
    passage: Path,
    question: str,
    *,
    run: Path,
    show: Path | None = None,
    opening: Annotated[Opening | None, Parameter(name="*")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Say which words of a passage answer a question.

    Parameters
    ----------
    passage
        A text file, UTF-8.
    question
        The question, in quotes.
    run
        The folder of a run of the task reading.
    show
        Also write a picture of what the words around the answer read in the question (.png, .svg, .pdf).
    as_json
        One JSON object, with the place of the answer and its probability.
    """
    of_task(run, "reading", "regard train reading")
    predict(run, str(passage), question, show=show, opening=opening, as_json=as_json)
