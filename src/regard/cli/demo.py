"""`regard demo`: a translator with attention beside the same one without, from nothing, in a minute or two."""

from pathlib import Path
from typing import Literal


def demo(
    kind: Literal["translation", "regression"] = "translation",
    *,
    output: Path = Path("regard-demo.png"),
    seed: int = 1,
    folder: Path | None = None,
) -> None:
    """Train a translator with and without attention, compare them, and draw where the one looked.

    Parameters
    ----------
    kind
        translation, or regression: a curve fitted by attention three ways.
    output
        Where the picture goes.
    seed
        Of everything that is drawn at random.
    folder
        Keep the two runs here; otherwise only the picture is kept.
    """
    if kind == "regression":
        from regard.cli.demo_regression import run_regression_demo

        run_regression_demo(output, seed)
        return
    from regard.cli.demo_translation import run_translation_demo

    run_translation_demo(output, seed, folder)
