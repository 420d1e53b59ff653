"""`regard translate`: standard input or files to standard output or a file, line by line, in order."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.progress import Progress

from regard.cli.input import CHUNK, get_stdin_handle, read_lines
from regard.cli.output import JsonFlag, open_console, print_json, print_text, redirect_output
from regard.cli.runs import EngineFlags, EngineOptions
from regard.datasets.text import clean
from regard.errors import format_message, wrong

if TYPE_CHECKING:
    from regard.tasks.data.vocabulary import Vocabulary
    from regard.tasks.translation import TranslationHypothesis, TranslationResult, TranslationSearchOptions, Translator


NAMED = 20  # unknown words of a line that a warning names, at most


@dataclass
class SearchOptions:
    """Options of beam search."""

    beam: int = 5
    "Hypotheses that are kept at each step; 1 is greedy search."
    n_best: int = 1
    "Translations of each line."
    length: float = 1.0
    "Exponent of the length penalty (Wu et al. 2016), which helps long translations; 0 for none."
    coverage: float = 0.0
    "Penalty for what was not looked at (Wu et al. 2016)."
    stop: Literal["exact", "full"] | None = None
    "exact: when no other can become better; full: when as many are found as the beam is wide, as ct2 does by default."
    batch: int = 64
    "Lines at once, at most."

    def build_search(self) -> "TranslationSearchOptions":
        """Return the options as the library has them."""
        from regard.tasks.translation import TranslationSearchOptions

        return TranslationSearchOptions(self.beam, self.n_best, self.length, self.coverage, self.stop)


SearchFlags = Annotated[SearchOptions | None, Parameter(name="*")]


@dataclass
class TextOptions:
    """Where lines come from, where translations go, and in which form."""

    input: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative="")] = None
    "Files to translate, one after another, beside those that follow the run; standard input where none is named."
    output: Path | None = None
    "A file for the translations; standard output if it is not given."
    alignments: bool = False
    "After a tab, which source token each token looked at most, as 0-0 1-2 …; in JSON, all weights."
    as_json: JsonFlag = False
    "One JSON object a line, with tokens and scores."


def translate(
    run: Path,
    *file: Path,
    search_options: SearchFlags = None,
    text_options: Annotated[TextOptions | None, Parameter(name="*")] = None,
    load_options: EngineFlags = None,
) -> None:
    """Translate standard input to standard output, or files to a file, a line for a line.

    Parameters
    ----------
    run
        The run folder, or a folder that regard export wrote.
    file
        Text files, UTF-8, a sentence in each line; standard input where none is named.
    """
    search_options, text_options = search_options or SearchOptions(), text_options or TextOptions()
    paths = [*file, *(text_options.input or ())]
    for path in paths:
        check_input(path, text_options.output)
    translator = (load_options or EngineOptions()).load_translator(run)
    with nullcontext() if text_options.output is None else redirect_output(text_options.output):
        number = 0
        for raw in show_progress(read_batches(paths, search_options.batch), paths, text_options.output):
            translate_lines(translator, [clean(line) for line in raw], number, search_options, text_options)
            number += len(raw)


def translate_lines(
    translator: "Translator", lines: Sequence[str], before: int, search_options: SearchOptions, options: TextOptions
) -> None:
    """Print the translations of some lines; `before` is how many there were before them."""
    search = search_options.build_search()
    warn(translator, lines, before, search)
    found = translator.translate(lines, search, attention=options.alignments)
    for number, (line, one) in enumerate(zip(lines, found, strict=True), before + 1):
        if options.as_json:
            print_json(translation_to_json(line, one))
            continue
        for text in format_translation(one, number, search_options.n_best, options.alignments):
            print_text(text)
    sys.stdout.flush()


def check_input(path: Path, output: Path | None) -> None:
    """Raise if a file to translate is not there, or would be overwritten by its translation."""
    from regard.tasks.data.text_files import check_plain_file

    check_plain_file(path, "input")
    if not path.is_file():
        fix = 'check the path; for one sentence, write regard predict RUN "…"'
        raise wrong("input", f"no file {path}", "a text file", fix)
    if output is not None and output.exists() and output.samefile(path):
        raise wrong("output", f"{output}, which is the input", "another file", "name another one")


def read_batches(paths: Sequence[Path], most: int) -> Iterator[list[str]]:
    """Yield the lines of some files, or of standard input, in lists of at most `most`."""
    if not paths:
        yield from read_lines(get_stdin_handle(), most)
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            yield from read_lines(handle, most)
        finally:
            os.close(handle)


def show_progress(batches: Iterator[list[str]], paths: Sequence[Path], output: Path | None) -> Iterator[list[str]]:
    """Yield the batches of files, with a bar if the translations do not go to the terminal themselves."""
    console = open_console(errors=True)
    is_hidden = not paths or not console.is_terminal or (output is None and sys.stdout.isatty())
    if is_hidden:
        yield from batches
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("translating", total=sum(map(count_lines, paths)))
        for batch in batches:
            yield batch
            bar.advance(task, len(batch))


def count_lines(path: Path) -> int:
    """Return how many lines a file has, without holding all of it."""
    with path.open("rb") as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(CHUNK), b""))


def format_translation(result: "TranslationResult", number: int, best: int, alignments: bool) -> Iterator[str]:
    """Yield the translations of one line; if there may be several, each begins with the number of its line."""
    if not result.best:
        yield ""
    for one in result.best:
        pairs = "\t" + format_pharaoh(one) if alignments else ""
        yield f"{number} ||| {one.text} ||| {one.score:.4f}{pairs}" if best > 1 else one.text + pairs


def format_pharaoh(one: "TranslationHypothesis") -> str:
    """Return, for each token of a translation, the source token with the largest weight, as `0-0 1-2`."""
    if one.weights is None:
        return ""
    words = one.weights[: len(one.ids), :-1]  # without the end symbols of both sentences
    return " ".join(f"{key}-{query}" for query, key in enumerate(words.argmax(1).tolist())) if words.shape[1] else ""


def translation_to_json(line: str, result: "TranslationResult") -> dict[str, Any]:
    """Return all about one line as a JSON object."""
    best = []
    for one in result.best:
        entry = {"text": one.text, "score": one.score, "log_prob": one.log_prob, "tokens": one.tokens}
        if one.weights is not None:
            entry["weights"] = [[round(weight, 6) for weight in row] for row in one.weights.tolist()]
        best.append(entry)
    return {"source": line, "source_tokens": result.source, "translations": best}


def warn(translator: "Translator", lines: Sequence[str], before: int, search: "TranslationSearchOptions") -> None:
    """Print to standard error what cannot be translated as it is; the line is translated all the same."""
    longest = translator.limit_length(search).longest
    for number, line in enumerate(lines, before + 1):
        for message in find_problems(translator.vocabularies.source, line, f"line {number}", longest):
            print(f"regard: {message}", file=sys.stderr)


def find_problems(vocabulary: "Vocabulary", line: str, name: str, longest: int) -> Iterator[str]:
    """Yield a message for unknown tokens, for each lost character and for too many tokens."""
    unknown = list(dict.fromkeys(token.strip("▁") for token in vocabulary.find_unknown(line)))
    if unknown:
        more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        got = f"{', '.join(map(repr, unknown[:NAMED]))}{more}, unknown to the vocabulary"
        fix = "check the spelling, or train on text that has it"
        yield format_message(name, got, "tokens of the training text", fix)
    for character in vocabulary.find_lost_characters(line):
        yield format_message(name, f"{character!r}", "other characters", "it is read as a blank")
    length = len(vocabulary.encode(line))
    if length >= longest:
        fix = f"split it; only its first {longest - 1} tokens are translated"
        yield format_message(name, f"{length} tokens", f"at most {longest - 1}", fix)
