"""`regard evaluate` of a translator: how good it is on held-out text."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.progress import track
from rich.table import Table

from regard.cli.output import JsonFlag, open_console
from regard.cli.runs import EngineOptions, RunFolder, Split
from regard.cli.translate import SearchFlags, SearchOptions
from regard.datasets.output_files import replace_output

if TYPE_CHECKING:
    from regard.tasks.translation import Translator
    from regard.tasks.translation.metrics import TranslationReport

AT_ONCE = 256  # sentences between two steps of the progress bar


@dataclass
class ComparisonOptions(EngineOptions):
    """The texts to compare, how, and where the translations and the figures go."""

    split: Split = "test"
    "Which part of the run's own text."
    tokenizer: Literal["13a", "none", "intl", "zh", "char"] | None = None
    "Of BLEU: none for text that is in tokens already; that of the run if it is not given."
    detokenize: str | None = None
    "The language of Moses tokens, such as de: BLEU (13a) of the text put together from them is shown as well."
    output: Path | None = None
    "A folder for the translations, one file for each test set."
    as_json: JsonFlag = False
    "One JSON object for all test sets."


ComparisonFlags = Annotated[ComparisonOptions | None, Parameter(name="*")]


def evaluate(
    run: RunFolder, *data: str, comparison: ComparisonFlags = None, search_options: SearchFlags = None
) -> None:
    """Translate held-out text and compare: BLEU and chrF with sacrebleu's signatures, and exact matches.

    Parameters
    ----------
    data
        Other text: two aligned files, a table, or a folder; that of the run if it is not given.
    """
    from regard.tasks import import_task
    from regard.tasks.translation.metrics import detokenize_lines, score_translations
    from regard.tasks.translation.predictor import load_sets

    comparison, search_options = comparison or ComparisonOptions(), search_options or SearchOptions()
    if comparison.detokenize:
        detokenize_lines((), comparison.detokenize)  # raises for an unknown language before all is translated
    named = import_task("translation").join_data_names(data) if data else None
    translator, reports = comparison.load_translator(run), {}
    for name, pairs in load_sets(translator.config, named, comparison.split, run).items():
        sources = [pair.source for pair in pairs]
        translations = translate_texts(translator, sources, search_options, name, quiet=comparison.as_json)
        save_translations(translations, name, comparison.output)
        tokenizer = comparison.tokenizer or translator.config.measure.tokenizer
        targets = [pair.target for pair in pairs]
        reports[name] = score_translations(translations, targets, tokenizer, comparison.detokenize)
    if comparison.as_json:
        print(json.dumps({name: report_to_json(one) for name, one in reports.items()}))
    else:
        show_reports(reports)


def translate_texts(
    translator: "Translator", texts: Sequence[str], search_options: SearchOptions, name: str, *, quiet: bool
) -> list[str]:
    """Return the best translation of each text; texts of similar length are translated together."""
    search, console = search_options.build_search(), open_console(errors=True)
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    parts = [order[start : start + AT_ONCE] for start in range(0, len(order), AT_ONCE)]
    translations = [""] * len(texts)
    for part in track(parts, name, console=console, transient=True, disable=quiet or not console.is_terminal):
        for index, result in zip(part, translator.translate([texts[index] for index in part], search), strict=True):
            translations[index] = result.best[0].text if result.best else ""
    return translations


def save_translations(translations: Sequence[str], name: str, folder: Path | None) -> None:
    """Write the translations of a set, if a folder is given."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        with replace_output(folder / f"{name}.txt") as written:
            written.write_text("".join(f"{line}\n" for line in translations), encoding="utf-8")


def report_to_json(report: "TranslationReport") -> dict[str, object]:
    """Return a report as a JSON object."""
    return {"sentences": report.sentences, "exact": report.exact} | {
        name.lower().replace(" ", "_"): {"score": one.value, "signature": one.signature}
        for name, one in report.scores.items()
    }


def show_reports(reports: "Mapping[str, TranslationReport]") -> None:
    """Print a line for each set, and the signatures of the metrics."""
    console = open_console()
    signatures = {name: one.signature for report in reports.values() for name, one in report.scores.items()}
    table = Table("", "sentences", *signatures, "exact %", box=None, pad_edge=False)
    for name, report in reports.items():
        values = [f"{one.value:.2f}" for one in report.scores.values()]
        table.add_row(name, str(report.sentences), *values, f"{report.exact:.1f}")
    console.print(table)
    for name, signature in signatures.items():
        console.print(f"{name} {signature}", markup=False)
