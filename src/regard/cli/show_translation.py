"""`regard show` of a translator: its alignment in the terminal, as a picture or as a page."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from regard.cli.figures import FigureFlags, FigureOptions
from regard.cli.output import open_console
from regard.cli.runs import LoadFlags, LoadOptions
from regard.cli.show import choose_outputs, print_map
from regard.datasets.text import clean
from regard.errors import wrong

if TYPE_CHECKING:
    from regard.tasks.translation import TranslationResult, Translator


def show(
    run: Path,
    sentence: str,
    *,
    output: Path | None = None,
    html: Path | None = None,
    beam: int = 5,
    load_options: LoadFlags = None,
    figure_options: FigureFlags = None,
) -> None:
    """Translate a sentence and show where the model looked for each token; with --curves, draw its training.

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
    from regard.tasks.translation import TranslationSearchOptions

    sentence = clean(sentence, "sentence")
    if not sentence:
        raise wrong("sentence", "nothing", "some words", "write the sentence in quotes")
    output, html = choose_outputs(output, html)
    translator = (load_options or LoadOptions()).load_translator(run)
    result = translator.translate([sentence], TranslationSearchOptions(beam, beam if html else 1), attention=True)[0]
    console = open_console()
    if output is None or result.best[0].weights is None:
        show_best(translator, result, console, draws=html is None)
    else:
        console.print(result.best[0].text, markup=False)
        save_picture(translator, result, run, output, figure_options or FigureOptions())
        console.print(f"picture: {output}", markup=False)
    if html is not None:
        save_page(translator, result, sentence, html)
        console.print(f"page: {html}", markup=False)


def show_best(translator: "Translator", result: "TranslationResult", console: Console, *, draws: bool) -> None:
    """Print the best translation and draw its alignment in the terminal."""
    from regard.tasks.translation.attention import missing_attention_error

    best = result.best[0]
    console.print(best.text, markup=False)
    if best.weights is None:
        raise missing_attention_error()
    if draws:
        from regard.tasks.translation.predictor import label_weights

        labeled = label_weights(translator, result)
        if labeled is not None:
            print_map(labeled, console)


def save_picture(
    translator: "Translator", result: "TranslationResult", run: Path, output: Path, options: FigureOptions
) -> None:
    """Write the alignment of the best translation."""
    from regard.tasks.translation.predictor import describe_attention, draw_attention

    title = options.choose_title(run.resolve().name, describe_attention(translator, options.language))
    options.save(draw_attention(result.best[0], result.source, title, options.language), output)


def save_page(translator: "Translator", result: "TranslationResult", sentence: str, path: Path) -> None:
    """Write a report of all hypotheses, the best first."""
    from regard.inspect.draw.chapters import Chapter
    from regard.inspect.draw.report import render_report, save_report
    from regard.tasks.translation.attention import record_translation

    chapters = [
        Chapter(one.text, record_translation(translator, result.ids, one.ids), one.score) for one in result.best
    ]
    save_report(render_report(chapters, sentence), path)
