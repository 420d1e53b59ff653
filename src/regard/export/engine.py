"""Translation by CTranslate2: the same translations as by torch, faster.

Its search differs from ours in some ways, which are made up for here. It divides scores by another power of the
length, so complete hypotheses are scored again by our rule. A sentence is searched by torch where CTranslate2 left
out some that our rule may prefer, where it says a token that is never said, where it breaks off at the longest
length, and, unless `stop` is given, where it stopped before it had found what greedy search finds. Where a
translation looked is computed by torch too, at once for all its tokens: in a beam search CTranslate2 4.8 gives the
first row of another sentence to hypotheses that end early.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import torch

from regard.errors import wrong
from regard.export.cache import convert_once
from regard.export.converter import check_supported, import_ctranslate2, name_tokens
from regard.models.search import Hypothesis
from regard.tasks.data import BEGIN, END
from regard.tasks.data.batches import group_by_length, pad_rows
from regard.tasks.data.special_tokens import SPECIAL_TOKENS
from regard.tasks.prediction import find_weights
from regard.tasks.translation import TranslationResult, TranslationSearchOptions, Translator
from regard.tasks.translation.encoded_pairs import encode_texts
from regard.tasks.translation.translations import compute_max_lengths, decode_hypothesis, search_batch

ROUNDING = 1e-4  # of scores
HypothesisLists: TypeAlias = list[list[Hypothesis]]  # of each sentence, the best first
NEARLY_NONE = 1e-9  # a length penalty that changes no order; with none at all CTranslate2 stops at the first ending


class CTranslate2Translator(Translator):
    """A translator whose search is done by CTranslate2, in float32."""

    def __init__(self, translator: Translator, folder: Path) -> None:
        super().__init__(translator.config, translator.vocabularies, translator.model)
        threads = torch.get_num_threads()
        self.engine = import_ctranslate2().Translator(str(folder), "cpu", compute_type="float32", intra_threads=threads)
        self.names = [name_tokens(vocabulary) for vocabulary in self.vocabularies]
        self.numbers = {name: number for number, name in enumerate(self.names[1])}

    def translate_nonblank(
        self, texts: Sequence[str], search: TranslationSearchOptions, *, attention: bool
    ) -> list[TranslationResult]:
        rows = encode_texts(texts, self.vocabularies.source, search.longest - 1)
        ours = adapt_search(search)
        best = self.search_rows(rows, ours) if rows else []
        if rows and search.stop is None and ours.stop == "full":
            best = self.improve(rows, best, search)
        if attention:
            best = [self.add_attention(row, own) for row, own in zip(rows, best, strict=True)]
        vocabularies = self.vocabularies
        return [
            TranslationResult(
                vocabularies.source.get_tokens(row), [decode_hypothesis(one, vocabularies) for one in own], tuple(row)
            )
            for row, own in zip(rows, best, strict=True)
        ]

    def add_attention(self, row: list[int], hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        """Hypotheses of a sentence with where they looked."""
        source, lengths = pad_rows([row])
        encoded = self.model.encode(source, lengths)
        found = []
        for one in hypotheses:
            taught = self.model.decoder.teacher_force(torch.tensor([[BEGIN, *one.tokens]]), encoded)
            found.append(replace(one, weights=None if taught.weights is None else taught.weights.dense()[0]))
        return found

    def search_rows(self, rows: Sequence[list[int]], search: TranslationSearchOptions) -> HypothesisLists:
        """The best hypotheses of each sentence."""
        rooms = compute_max_lengths(torch.tensor([len(row) for row in rows]), search).tolist()
        results = self.engine.translate_batch(
            [[self.names[0][number] for number in row] for row in rows],
            max_batch_size=search.budget,
            batch_type="tokens",
            max_input_length=0,
            max_decoding_length=max(rooms) + 1,
            min_decoding_length=0,
            return_scores=True,
            return_end_token=True,
            **build_options(search),
        )
        found = {}
        for place, (room, result) in enumerate(zip(rooms, results, strict=True)):
            own = [self.build_hypothesis(result, number, search) for number in range(len(result.hypotheses))]
            if not (any(is_broken(one, room) for one in own) or may_miss_better(own, search)):
                found[place] = sorted(map(strip_end, own), key=lambda one: -one.score)[: search.best]
        found |= self.search_by_torch(rows, [place for place in range(len(rows)) if place not in found], search)
        return [found[place] for place in range(len(rows))]

    def improve(
        self, rows: Sequence[list[int]], best: HypothesisLists, search: TranslationSearchOptions
    ) -> HypothesisLists:
        """With an exact search where greedy search has found a better one.

        The beam was then full of others that ended before: with few words an end is soon among the best tokens.
        """
        greedy = self.search_rows(rows, replace(search, beam=1, best=1))
        divisor = search.beam_options.scoring.compute_divisor
        worse = [
            place
            for place, (own, (one,)) in enumerate(zip(best, greedy, strict=True))
            if one.log_prob / divisor(len(one.tokens) + 1) > own[0].score + ROUNDING
        ]
        exact = self.search_by_torch(rows, worse, search)
        return [exact.get(place, own) for place, own in enumerate(best)]

    def search_by_torch(
        self, rows: Sequence[list[int]], places: list[int], search: TranslationSearchOptions
    ) -> dict[int, list[Hypothesis]]:
        """The best hypotheses of some of the sentences, which CTranslate2 cannot find."""
        found: dict[int, list[Hypothesis]] = {}
        for chosen in group_by_length([len(rows[place]) for place in places], search.budget):
            some = [places[index] for index in chosen]
            best = search_batch(self.model, [rows[place] for place in some], search, attention=False)
            found |= zip(some, best, strict=True)
        return found

    def build_hypothesis(self, result: Any, place: int, search: TranslationSearchOptions) -> Hypothesis:
        """One of the hypotheses of a sentence in our words; its tokens still end with END."""
        tokens = tuple(self.numbers[name] for name in result.hypotheses[place])
        log_prob = result.scores[place] * len(tokens) ** build_options(search)["length_penalty"]
        divisor = 1.0 if search.beam == 1 else search.beam_options.scoring.compute_divisor(len(tokens))
        return Hypothesis(tokens, log_prob / divisor, log_prob)


def adapt_search(search: TranslationSearchOptions) -> TranslationSearchOptions:
    """The search as CTranslate2 does it, or one sentence where it cannot.

    It ends a sentence when as many hypotheses are complete as the beam is wide, and does not tell what was still alive:
    that is exact for the most probable one alone.
    """
    if search.coverage:
        raise wrong("coverage", search.coverage, "0 for the ct2 engine", "leave it out, or use --engine torch")
    exact = search.beam == 1 or (search.length_penalty == 0 and search.best == 1)
    if search.stop == "exact" and not exact:
        expected = "full for the ct2 engine, but for the best of a beam with --length 0"
        raise wrong("stop", "exact", expected, "use --stop full, --length 0, or --engine torch")
    return replace(search, stop=search.stop or ("exact" if exact else "full"))


def build_options(search: TranslationSearchOptions) -> dict[str, Any]:
    """What CTranslate2 is told of a search."""
    if search.beam == 1 or search.stop == "exact":
        return {"beam_size": search.beam, "num_hypotheses": 1, "length_penalty": 0.0}
    return {
        "beam_size": search.beam,
        "num_hypotheses": search.beam,
        "length_penalty": NEARLY_NONE,
    }


def is_broken(hypothesis: Hypothesis, room: int) -> bool:
    """Whether our search would not have found a hypothesis: it says what is never said, or is too long."""
    *tokens, last = hypothesis.tokens or (-1,)
    return last != END or len(tokens) >= room or any(token in SPECIAL_TOKENS.never for token in tokens)


def may_miss_better(hypotheses: Sequence[Hypothesis], search: TranslationSearchOptions) -> bool:
    """Whether one that CTranslate2 left out may be better than the worst that is wanted.

    It leaves out the least probable of more than it was asked for. None of them is longer than the longest that it
    gives: the step at which it stops is one at which a hypothesis that it gives has ended.
    """
    if len(hypotheses) < search.beam or search.beam == 1:
        return False
    divisor = search.beam_options.scoring.compute_divisor(max(len(one.tokens) for one in hypotheses))
    scores = sorted((one.score for one in hypotheses), reverse=True)
    return scores[search.best - 1] < min(one.log_prob for one in hypotheses) / divisor


def strip_end(hypothesis: Hypothesis) -> Hypothesis:
    return replace(hypothesis, tokens=hypothesis.tokens[:-1])


def open_translator(translator: Translator, run: Path, weights: Path | None = None) -> CTranslate2Translator:
    """The translator of a run folder, by CTranslate2."""
    check_supported(translator.config.model)
    return CTranslate2Translator(translator, convert_once(translator, run, find_weights(run, weights)))
