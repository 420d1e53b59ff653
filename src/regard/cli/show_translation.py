"""`regard show` of a translator: its alignment in the terminal, as a picture or as a page."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from regard.cli.figures import FigureOptions
from regard.cli.output import open_console, print_path
from regard.cli.runs import EngineOptions, RunFolder
from regard.cli.show import ShowRunOptions, print_map
from regard.datasets.text import clean
from regard.errors import wrong

if TYPE_CHECKING:
    from regard.tasks.translation import TranslationResult, Translator


@dataclass
class ShowTranslationOptions(ShowRunOptions, EngineOptions):
    """Options of an alignment."""


ShowTranslationFlags = Annotated[ShowTranslationOptions | None, Parameter(name="*")]


def show(run: RunFolder, sentence: str, *, beam: int = 5, options: ShowTranslationFlags = None) -> None:
    """Translate a sentence and show where the model looked for each token; with --curves, draw its training.

    Parameters
    ----------
    sentence
        What to translate.
    beam
        Hypotheses that are kept at each step.
    """
    from regard.tasks.translation import TranslationSearchOptions

    sentence = clean(sentence, "sentence")
    if not sentence:
        raise wrong("sentence", "nothing", "some words", "write the sentence in quotes")
    options = options or ShowTranslationOptions()
    translator = options.load_translator(run)
    result = translator.translate(
        [sentence], TranslationSearchOptions(beam, beam if options.html else 1), attention=True
    )[0]
    console = open_console()
    if options.output is None or result.best[0].weights is None:
        show_best(translator, result, console, draws=options.html is None)
    else:
        console.print(result.best[0].text, markup=False)
        save_picture(translator, result, run, options)
    if options.html is not None:
        save_page(translator, result, sentence, options.html)
        print_path("page", options.html)


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


def save_picture(translator: "Translator", result: "TranslationResult", run: Path, options: FigureOptions) -> None:
    """Write the alignment of the best translation."""
    from regard.tasks.translation.predictor import describe_attention, draw_attention

    title = options.choose_title(run.resolve().name, describe_attention(translator, options.language))
    options.save(draw_attention(result.best[0], result.source, title, options.language))


def save_page(translator: "Translator", result: "TranslationResult", sentence: str, path: Path) -> None:
    """Write a report of all hypotheses, the best first."""
    from regard.inspect.draw.chapters import Chapter
    from regard.inspect.draw.report import render_report, save_report
    from regard.tasks.translation.attention import record_translation

    chapters = [
        Chapter(one.text, record_translation(translator, result.ids, one.ids), one.score) for one in result.best
    ]
    save_report(render_report(chapters, sentence), path)
