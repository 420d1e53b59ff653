"""From texts to their translations, whatever the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from torch import Tensor

from regard.errors import wrong
from regard.models import EncoderDecoder
from regard.models.search import BeamOptions, Hypothesis, HypothesisScorer, no_hypothesis
from regard.tasks.data import END, Vocabularies, special_tokens
from regard.tasks.data.batches import map_by_length, pad_rows
from regard.tasks.translation.encoded_pairs import encode_texts


class TranslationHypothesis(NamedTuple):
    """One translation of a text.

    `weights` has a row for each token and one for the end, a column for each source token and one for its end; none if
    the model has no attention, or if nobody asked.
    """

    text: str
    score: float
    log_prob: float
    tokens: list[str]
    weights: Tensor | None
    ids: tuple[int, ...]  # of the tokens without the end


class TranslationResult(NamedTuple):
    """A text in tokens, its end included, and its translations, the best first."""

    source: list[str]
    best: list[TranslationHypothesis]
    ids: tuple[int, ...]  # of the source, its end included

    @property
    def first(self) -> TranslationHypothesis:
        """The best translation; raise one sentence if there is none, because every score was NaN."""
        if not self.best:
            raise no_hypothesis()
        return self.best[0]


@dataclass(frozen=True, slots=True)
class TranslationSearchOptions:
    """Options of the search for translations."""

    beam: int = 5
    best: int = 1  # how many translations of each text
    length_penalty: float = 1.0  # exponent that favors long ones (Wu et al. 2016, eq. 14)
    coverage: float = 0.0  # penalty for source tokens without attention
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
    def beam_options(self) -> BeamOptions:
        """The same for the search itself."""
        return BeamOptions(
            self.beam, self.best, self.stop or "exact", HypothesisScorer("wu", self.length_penalty, self.coverage)
        )


def translate(
    model: EncoderDecoder[Any],
    vocabularies: Vocabularies,
    texts: Sequence[str],
    search: TranslationSearchOptions,
    *,
    attention: bool = False,
) -> list[TranslationResult]:
    """Translate texts, those of like length together, and return the results in the order of the texts.

    Of a text that has more tokens than `search.longest`, its end included, the beginning is translated.
    """
    rows = encode_texts(texts, vocabularies.source, search.longest - 1)
    best = map_by_length(rows, search.budget, lambda some: search_batch(model, some, search, attention=attention))
    return [decode_result(row, own, vocabularies) for row, own in zip(rows, best, strict=True)]


def decode_result(row: list[int], best: Sequence[Hypothesis], vocabularies: Vocabularies) -> TranslationResult:
    """Return the translations of a text, given its token ids and the hypotheses that were found."""
    translations = [decode_hypothesis(one, vocabularies) for one in best]
    return TranslationResult(vocabularies.source.get_tokens(row), translations, tuple(row))


def search_batch(
    model: EncoderDecoder[Any], rows: Sequence[list[int]], search: TranslationSearchOptions, *, attention: bool
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each sentence of a batch."""
    device = next(model.parameters()).device
    source, lengths = pad_rows(rows).to(device)
    encoded = model.encode(source, lengths)
    room = compute_max_lengths(lengths, search)
    options = None if search.beam == 1 and not search.coverage else search.beam_options
    return special_tokens.search(model.decoder, encoded, room, options, attention=attention)


def compute_max_lengths(lengths: Tensor, search: TranslationSearchOptions) -> Tensor:
    """Return the most tokens that a translation may have, for sources of these lengths."""
    return (2 * lengths + 30).clamp_max(search.longest - 1)


def decode_hypothesis(hypothesis: Hypothesis, vocabularies: Vocabularies) -> TranslationHypothesis:
    """Return a hypothesis in words."""
    target, tokens = vocabularies.target, hypothesis.tokens
    return TranslationHypothesis(
        target.decode(tokens),
        hypothesis.score,
        hypothesis.log_prob,
        target.get_tokens([*tokens, END]),
        hypothesis.weights,
        tokens,
    )
