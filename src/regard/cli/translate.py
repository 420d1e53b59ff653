"""`regard translate`: standard input to standard output, line by line, in order."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from regard.cli.opening import Opening
from regard.cli.output import say, say_json
from regard.cli.reading import lines_of, standard_input
from regard.datasets.cleaning import clean
from regard.errors import sentence

if TYPE_CHECKING:
    from regard.tasks.translation import Said, Search, Translated, Translator


NAMED = 20  # unknown words of a line that are named


@dataclass
class Looking:
    """How translations are looked for."""

    beam: int = 5
    "Hypotheses that are kept at each step; 1 is greedy search."
    n_best: int = 1
    "Translations of each line."
    length: float = 1.0
    "Help for long translations (Wu et al. 2016); 0 for none."
    coverage: float = 0.0
    "Penalty for what was not looked at (Wu et al. 2016)."
    stop: Literal["exact", "full"] | None = None
    "exact: when no other can become better; full: when as many are found as the beam is wide, as ct2 does by default."
    batch: int = 64
    "Lines at once, at most."

    def search(self) -> "Search":
        """The same in the words of the library."""
        from regard.tasks.translation import Search

        return Search(self.beam, self.n_best, self.length, self.coverage, self.stop)


def translate(
    run: Path,
    *,
    looking: Annotated[Looking | None, Parameter(name="*")] = None,
    alignments: bool = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    opening: Annotated[Opening | None, Parameter(name="*")] = None,
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
    looking = looking or Looking()
    search, number = looking.search(), 0
    translator = (opening or Opening()).translator(run)
    for raw in lines_of(standard_input(), looking.batch):
        lines = [clean(line) for line in raw]
        warn(translator, lines, number, search)
        found = translator.translate(lines, search, attention=alignments)
        for line, one in zip(lines, found, strict=True):
            number += 1
            if as_json:
                say_json(as_object(line, one))
            for text in () if as_json else as_text(one, number, looking.n_best, alignments):
                say(text)
        sys.stdout.flush()


def as_text(one: "Translated", number: int, best: int, alignments: bool) -> Iterator[str]:
    """The lines of one translated line. With several translations each has the number of its line before it."""
    if not one.best:
        yield ""
    for said in one.best:
        pairs = "\t" + pharaoh(said) if alignments else ""
        yield f"{number} ||| {said.text} ||| {said.score:.4f}{pairs}" if best > 1 else said.text + pairs


def pharaoh(said: "Said") -> str:
    """For each token of the translation, the source token it looked at most."""
    if said.weights is None:
        return ""
    words = said.weights[: len(said.numbers), :-1]  # the last row and the last column are the ends
    return " ".join(f"{place}-{row}" for row, place in enumerate(words.argmax(1).tolist())) if words.shape[1] else ""


def as_object(line: str, one: "Translated") -> dict[str, Any]:
    """All about one line, for JSON."""
    best = []
    for said in one.best:
        entry: dict[str, Any] = {"text": said.text, "score": said.score, "log_prob": said.log_prob}
        entry["tokens"] = said.tokens
        if said.weights is not None:
            entry["weights"] = [[round(weight, 6) for weight in row] for row in said.weights.tolist()]
        best.append(entry)
    return {"source": line, "source_tokens": one.source, "translations": best}


def warn(translator: "Translator", lines: Sequence[str], before: int, search: "Search") -> None:
    """Says on standard error what cannot be translated as it is; the line is translated all the same."""
    longest = translator.fitted(search).longest
    for number, line in enumerate(lines, before + 1):
        vocabulary = translator.vocabularies.source
        unknown = list(dict.fromkeys(token.strip("▁") for token in vocabulary.unknown(line)))
        if unknown:
            more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
            got = f"{', '.join(map(repr, unknown[:NAMED]))}{more}, unknown to the vocabulary"
            fix = "check the spelling, or train on text that has it"
            print("regard: " + sentence(f"line {number}", got, "tokens of the training text", fix), file=sys.stderr)
        for character in vocabulary.lost(line):
            text = sentence(f"line {number}", f"{character!r}", "other characters", "it is read as a blank")
            print(f"regard: {text}", file=sys.stderr)
        length = len(translator.vocabularies.source.encode(line)) + 1
        if length > longest:
            fix = f"split it; only its first {longest - 1} tokens are translated"
            text = sentence(f"line {number}", f"{length - 1} tokens", f"at most {longest - 1}", fix)
            print(f"regard: {text}", file=sys.stderr)
