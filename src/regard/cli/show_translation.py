"""`regard show` of a translator: where it looked, in the terminal, as a picture or as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from regard.cli.runs import LoadOptions
from regard.cli.show import choose_outputs
from regard.errors import wrong

if TYPE_CHECKING:
    from torch import Tensor

    from regard.tasks.translation import TranslationResult, Translator


def show(
    run: Path,
    sentence: str,
    *,
    output: Path | None = None,
    html: Path | None = None,
    beam: int = 5,
    load_options: Annotated[LoadOptions | None, Parameter(name="*")] = None,
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
    from regard.datasets.text import clean
    from regard.tasks.translation import TranslationSearchOptions
    from regard.tasks.translation.attention import missing_attention_error

    sentence = clean(sentence, "sentence")
    if not sentence:
        raise wrong("sentence", "nothing", "some words", "write the sentence in quotes")
    output, html = choose_outputs(output, html)
    translator = (load_options or LoadOptions()).load_translator(run)
    one = translator.translate([sentence], TranslationSearchOptions(beam, beam if html else 1), attention=True)[0]
    said, console = one.best[0], Console(highlight=False)
    console.print(said.text, markup=False)
    if said.weights is None:
        raise missing_attention_error()
    if html is not None:
        save_page(translator, one, sentence, html)
        console.print(f"page: {html}", markup=False)
    if output is not None or html is None:
        draw(one, said.weights, output, console)


def draw(one: "TranslationResult", weights: "Tensor", output: Path | None, console: Console) -> None:
    """The best translation as a picture, or in the terminal."""
    if output is None:
        from regard.inspect.draw.terminal import render_heat_map

        console.print(render_heat_map(weights.tolist(), one.source, one.best[0].tokens, console.width), soft_wrap=True)
        return
    from regard.inspect.draw.alignment import save_figure
    from regard.tasks.translation.predictor import draw_attention

    save_figure(draw_attention(one.best[0], one.source), output)
    console.print(f"picture: {output}", markup=False)


def save_page(translator: "Translator", one: "TranslationResult", sentence: str, path: Path) -> None:
    """Writes a report of all hypotheses, the best first."""
    from regard.inspect.draw.chapters import Chapter
    from regard.inspect.draw.report import render_report, save_report
    from regard.tasks.translation.attention import record_translation

    chapters = [Chapter(said.text, record_translation(translator, one.ids, said.ids), said.score) for said in one.best]
    save_report(render_report(chapters, sentence), path)
