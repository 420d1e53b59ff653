"""From texts to their translations, whatever the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from torch import Tensor

from regard.errors import wrong
from regard.models import Model
from regard.models.search import Beam, Hypothesis, Scoring, beam, greedy, no_hypothesis
from regard.tasks.data import END, Vocabularies
from regard.tasks.data.marks import MARKS
from regard.tasks.translation.numbered import alike, closed, padded


class Said(NamedTuple):
    """One translation of a text.

    `weights` has a row for each token and one for the end, a column for each source token and one for its end; none
    where the model looks at nothing, or where nobody asked.
    """

    text: str
    score: float
    log_prob: float
    tokens: list[str]
    weights: Tensor | None
    numbers: tuple[int, ...]  # of the tokens without the end


class Translated(NamedTuple):
    """A text in tokens, its end included, and its translations, the best first."""

    source: list[str]
    best: list[Said]
    numbers: tuple[int, ...]  # of the source, its end included

    @property
    def first(self) -> Said:
        """The best translation; one sentence where there is none, because no score was a number."""
        if not self.best:
            raise no_hypothesis()
        return self.best[0]


@dataclass(frozen=True, slots=True)
class Search:
    """How translations are looked for."""

    beam: int = 5
    best: int = 1  # how many translations of each text
    length: float = 1.0  # help for long ones (Wu et al. 2016, eq. 14)
    coverage: float = 0.0  # penalty for what was not looked at
    # exact: when none can become better; full: when as many are found as the beam is wide; none: what the engine can
    stop: Literal["exact", "full"] | None = None
    budget: int = 4096  # source tokens at once, padding included
    longest: int = 512  # tokens of a text, and of its translation

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise wrong("beam", self.beam, "at least 1", "use 1 for greedy search, 5 for translation")
        if not 1 <= self.best <= self.beam:
            raise wrong("n-best", self.best, f"1 to {self.beam}, the width of the beam", f"use --beam {self.best}")

    @property
    def plan(self) -> Beam:
        """The same for the search itself."""
        return Beam(self.beam, self.best, self.stop or "exact", Scoring("wu", self.length, self.coverage))


def translate(
    model: Model[Any],
    vocabularies: Vocabularies,
    texts: Sequence[str],
    search: Search,
    *,
    attention: bool = False,
) -> list[Translated]:
    """Translates texts, alike ones together, and gives them back in the order they came.

    Of a text that has more tokens than `search.longest`, its end included, the beginning is translated.
    """
    rows = closed(texts, vocabularies.source, search.longest - 1)
    found: dict[int, Translated] = {}
    for chosen in alike([len(row) for row in rows], search.budget):
        some = [rows[index] for index in chosen]
        best = searched(model, some, search, attention=attention)
        for index, row, own in zip(chosen, some, best, strict=True):
            translations = [said(one, vocabularies) for one in own]
            found[index] = Translated(vocabularies.source.tokens(row), translations, tuple(row))
    return [found[index] for index in range(len(texts))]


def searched(
    model: Model[Any], rows: Sequence[list[int]], search: Search, *, attention: bool
) -> list[list[Hypothesis]]:
    """The best hypotheses of sentences of about the same length."""
    device = next(model.parameters()).device
    source, lengths = (tensor.to(device) for tensor in padded(rows))
    encoded = model.encode(source, lengths)
    room = room_for(lengths, search)
    if search.beam == 1 and not search.coverage:
        return [[one] for one in greedy(model.decoder, encoded, MARKS, room, attention=attention)]
    return beam(model.decoder, encoded, MARKS, room, plan=search.plan, attention=attention)


def room_for(lengths: Tensor, search: Search) -> Tensor:
    """The most tokens that a translation may have, for sources of these lengths."""
    return (2 * lengths + 30).clamp_max(search.longest - 1)


def said(hypothesis: Hypothesis, vocabularies: Vocabularies) -> Said:
    """A hypothesis in words."""
    target, tokens = vocabularies.target, hypothesis.tokens
    return Said(
        target.decode(tokens),
        hypothesis.score,
        hypothesis.log_prob,
        target.tokens([*tokens, END]),
        hypothesis.weights,
        tokens,
    )
