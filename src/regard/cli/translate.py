"""`regard translate`: standard input to standard output, line by line, in order."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from regard.cli.input import get_stdin_handle, read_lines
from regard.cli.output import JsonFlag, print_json, print_text
from regard.cli.runs import LoadFlags, LoadOptions
from regard.datasets.text import clean
from regard.errors import format_message

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


def translate(
    run: Path,
    *,
    search_options: SearchFlags = None,
    alignments: bool = False,
    as_json: JsonFlag = False,
    load_options: LoadFlags = None,
) -> None:
    """Translate standard input to standard output, a line for a line.

    Parameters
    ----------
    run
        The run folder.
    alignments
        After a tab, which source token each token looked at most, as 0-0 1-2 …; in JSON, all weights.
    as_json
        One JSON object a line, with tokens and scores.
    """
    search_options = search_options or SearchOptions()
    search, number = search_options.build_search(), 0
    translator = (load_options or LoadOptions()).load_translator(run)
    for raw in read_lines(get_stdin_handle(), search_options.batch):
        lines = [clean(line) for line in raw]
        warn(translator, lines, number, search)
        found = translator.translate(lines, search, attention=alignments)
        for line, one in zip(lines, found, strict=True):
            number += 1
            if as_json:
                print_json(translation_to_json(line, one))
            for text in () if as_json else format_translation(one, number, search_options.n_best, alignments):
                print_text(text)
        sys.stdout.flush()


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
