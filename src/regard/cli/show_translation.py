"""`regard show` of a translator: where it looked, in the terminal, as a picture or as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from regard.cli.opening import Opening
from regard.cli.show import placed
from regard.errors import wrong

if TYPE_CHECKING:
    from torch import Tensor

    from regard.tasks.translation import Translated, Translator


def show(
    run: Path,
    sentence: str,
    *,
    output: Path | None = None,
    html: Path | None = None,
    beam: int = 5,
    opening: Annotated[Opening | None, Parameter(name="*")] = None,
) -> None:
    """Translate a sentence and show where the model looked for each token.

    Parameters
    ----------
    run
        The run folder.
    sentence
        What to translate.
    output
        A picture (.png, .svg, .pdf) or a page (.html) instead of the map in the terminal.
    html
        A page to look through: every hypothesis of the beam, every layer and head, with exact weights.
    beam
        Hypotheses that are kept at each step.
    """
    from regard.datasets.cleaning import clean
    from regard.tasks.translation import Search
    from regard.tasks.translation.looking import unseen

    sentence = clean(sentence, "sentence")
    if not sentence:
        raise wrong("sentence", "nothing", "some words", "write the sentence in quotes")
    output, html = placed(output, html)
    translator = (opening or Opening()).translator(run)
    one = translator.translate([sentence], Search(beam, beam if html else 1), attention=True)[0]
    said, console = one.best[0], Console(highlight=False)
    console.print(said.text, markup=False)
    if said.weights is None:
        raise unseen()
    if html is not None:
        page(translator, one, sentence, html)
        console.print(f"page: {html}", markup=False)
    if output is not None or html is None:
        draw(one, said.weights, output, console)


def draw(one: "Translated", weights: "Tensor", output: Path | None, console: Console) -> None:
    """The best translation as a picture, or in the terminal."""
    if output is None:
        from regard.inspect.draw.terminal import heat_map

        console.print(heat_map(weights.tolist(), one.source, one.best[0].tokens, console.width), soft_wrap=True)
        return
    from regard.inspect.draw.alignment import save
    from regard.tasks.translation.predictor import drawn

    save(drawn(one.best[0], one.source), output)
    console.print(f"picture: {output}", markup=False)


def page(translator: "Translator", one: "Translated", sentence: str, path: Path) -> None:
    """Writes a report of all hypotheses, the best first."""
    from regard.inspect.draw.chapters import Chapter
    from regard.inspect.draw.report import report, save_report
    from regard.tasks.translation.looking import looked

    chapters = [Chapter(said.text, looked(translator, one.numbers, said.numbers), said.score) for said in one.best]
    save_report(report(chapters, sentence), path)
