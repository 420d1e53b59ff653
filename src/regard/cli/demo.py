"""`regard demo`: a translator with attention beside the same one without, from nothing, in a minute or two."""

from pathlib import Path
from typing import Literal

from regard.cli.figures import FigureFlags, FigureOptions


def demo(
    kind: Literal["translation", "regression"] = "translation",
    *,
    seed: int = 1,
    folder: Path | None = None,
    figure_options: FigureFlags = None,
) -> None:
    """Train a translator with and without attention, compare them, and draw where the one looked.

    Parameters
    ----------
    kind
        translation, or regression: a curve fitted by attention three ways.
    seed
        Of everything that is drawn at random.
    folder
        Keep the two runs here; otherwise they are removed.
    """
    options = figure_options or FigureOptions()
    options.check()
    if kind == "regression":
        from regard.cli.demo_regression import run_regression_demo

        run_regression_demo(seed, options)
        return
    from regard.cli.demo_translation import run_translation_demo

    run_translation_demo(seed, folder, options)
