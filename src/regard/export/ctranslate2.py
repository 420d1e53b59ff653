"""Translation by CTranslate2: the same translations as by torch, faster.

Its search differs from ours, and this module corrects for it. CTranslate2 divides scores by another power of the
length, so complete hypotheses are scored again by our rule. Torch searches a sentence again if CTranslate2 may have
left out a hypothesis that our rule prefers, if it predicted a special token, if it broke off at the longest length,
and, unless `stop` is given, if it stopped before it had found what greedy search finds. Torch also computes the
attention weights, by teacher forcing: in a beam search CTranslate2 4.8 gives the first row of another sentence to
hypotheses that end early.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, get_args

import torch

from regard.errors import import_package, wrong
from regard.export.converter import name_tokens
from regard.models.kernels.prepacked import Precision
from regard.models.search import Hypothesis
from regard.tasks.data import BEGIN, END
from regard.tasks.data.batches import map_by_length, pad_rows
from regard.tasks.data.special_tokens import SPECIAL_TOKENS
from regard.tasks.translation import TranslationResult, TranslationSearchOptions, Translator
from regard.tasks.translation.encoded_pairs import encode_texts
from regard.tasks.translation.translations import compute_max_lengths, decode_result, search_batch

ROUNDING = 1e-4  # of scores
HypothesisLists: TypeAlias = list[list[Hypothesis]]  # of each sentence, the best first
NEARLY_NONE = 1e-9  # a length penalty that changes no order: with 0 CTranslate2 stops at the first ending


class CTranslate2Translator(Translator):
    """A translator whose search CTranslate2 does, in one of its precisions."""

    def __init__(self, translator: Translator, folder: Path, precision: Precision = "float32") -> None:
        super().__init__(translator.config, translator.vocabularies, translator.model)
        package, threads = import_package("ctranslate2", "ct2"), torch.get_num_threads()
        known = package.get_supported_compute_types("cpu")
        if precision not in known:
            has = [name for name in get_args(Precision) if name in known]
            raise wrong("precision", precision, f"{' or '.join(has)} for the ct2 engine on this processor", "use that")
        self.engine = package.Translator(str(folder), "cpu", compute_type=precision, intra_threads=threads)
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
        return [decode_result(row, own, self.vocabularies) for row, own in zip(rows, best, strict=True)]

    def add_attention(self, row: list[int], hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses of a sentence with their attention weights."""
        source, lengths = pad_rows([row])
        encoded = self.model.encode(source, lengths)
        inputs = [torch.tensor([[BEGIN, *one.tokens]]) for one in hypotheses]
        weights = [self.model.decoder.teacher_force(tokens, encoded).weights for tokens in inputs]
        pairs = zip(hypotheses, weights, strict=True)
        return [replace(one, weights=None if own is None else own.dense()[0]) for one, own in pairs]

    def search_rows(self, rows: Sequence[list[int]], search: TranslationSearchOptions) -> HypothesisLists:
        """Return the best hypotheses of each sentence."""
        limits = compute_max_lengths(torch.tensor([len(row) for row in rows]), search).tolist()
        results = self.engine.translate_batch(
            [[self.names[0][number] for number in row] for row in rows],
            max_batch_size=search.budget,
            batch_type="tokens",
            max_input_length=0,
            max_decoding_length=max(limits) + 1,
            min_decoding_length=0,
            return_scores=True,
            return_end_token=True,
            **build_options(search),
        )
        found = {}
        for index, (limit, result) in enumerate(zip(limits, results, strict=True)):
            own = [self.build_hypothesis(result, number, search) for number in range(len(result.hypotheses))]
            if not (any(is_broken(one, limit) for one in own) or may_miss_better(own, search)):
                found[index] = sorted(map(strip_end, own), key=lambda one: -one.score)[: search.best]
        found |= self.search_by_torch(rows, [index for index in range(len(rows)) if index not in found], search)
        return [found[index] for index in range(len(rows))]

    def improve(
        self, rows: Sequence[list[int]], best: HypothesisLists, search: TranslationSearchOptions
    ) -> HypothesisLists:
        """Search again, exactly, the sentences of which greedy search has found a better hypothesis.

        Their beam was full of hypotheses that ended before: with few words an end is soon among the best tokens.
        """
        greedy = self.search_rows(rows, replace(search, beam=1, best=1))
        divisor = search.beam_options.scoring.compute_divisor
        worse = [
            index
            for index, (own, (one,)) in enumerate(zip(best, greedy, strict=True))
            if one.log_prob / divisor(len(one.tokens) + 1) > own[0].score + ROUNDING
        ]
        exact = self.search_by_torch(rows, worse, search)
        return [exact.get(index, own) for index, own in enumerate(best)]

    def search_by_torch(
        self, rows: Sequence[list[int]], indices: list[int], search: TranslationSearchOptions
    ) -> dict[int, list[Hypothesis]]:
        """Return the best hypotheses of the sentences at `indices`, which CTranslate2 cannot find."""
        hard = [rows[index] for index in indices]
        best = map_by_length(hard, search.budget, lambda some: search_batch(self.model, some, search, attention=False))
        return dict(zip(indices, best, strict=True))

    def build_hypothesis(self, result: Any, number: int, search: TranslationSearchOptions) -> Hypothesis:
        """Return one hypothesis of a result, scored by our rule; its tokens still end with END."""
        tokens = tuple(self.numbers[name] for name in result.hypotheses[number])
        log_prob = result.scores[number] * len(tokens) ** build_options(search)["length_penalty"]
        divisor = 1.0 if search.beam == 1 else search.beam_options.scoring.compute_divisor(len(tokens))
        return Hypothesis(tokens, log_prob / divisor, log_prob)


def adapt_search(search: TranslationSearchOptions) -> TranslationSearchOptions:
    """Return the options with the stopping rule of CTranslate2; raise if it cannot search so.

    It ends a sentence when as many hypotheses are complete as the beam is wide, which is exact for the most probable
    hypothesis alone.
    """
    if search.coverage:
        raise wrong("coverage", search.coverage, "0 for the ct2 engine", "leave it out, or use --engine torch")
    exact = search.beam == 1 or (search.length_penalty == 0 and search.best == 1)
    if search.stop == "exact" and not exact:
        expected = "full for the ct2 engine, but for the best of a beam with --length 0"
        raise wrong("stop", "exact", expected, "use --stop full, --length 0, or --engine torch")
    return replace(search, stop=search.stop or ("exact" if exact else "full"))


def build_options(search: TranslationSearchOptions) -> dict[str, Any]:
    """Return the options of CTranslate2 for a search."""
    single = search.beam == 1 or search.stop == "exact"
    count, penalty = (1, 0.0) if single else (search.beam, NEARLY_NONE)
    return {"beam_size": search.beam, "num_hypotheses": count, "length_penalty": penalty}


def is_broken(hypothesis: Hypothesis, limit: int) -> bool:
    """Return whether our search excludes a hypothesis: it has a special token, or is too long."""
    *tokens, last = hypothesis.tokens or (-1,)
    return last != END or len(tokens) >= limit or any(token in SPECIAL_TOKENS.never for token in tokens)


def may_miss_better(hypotheses: Sequence[Hypothesis], search: TranslationSearchOptions) -> bool:
    """Return whether a hypothesis that CTranslate2 left out may be better than the worst that is wanted.

    It leaves out the least probable of those it completed. None of them is longer than the longest that it returns: at
    the step at which it stops, a hypothesis that it returns has ended.
    """
    if len(hypotheses) < search.beam or search.beam == 1:
        return False
    divisor = search.beam_options.scoring.compute_divisor(max(len(one.tokens) for one in hypotheses))
    scores = sorted((one.score for one in hypotheses), reverse=True)
    return scores[search.best - 1] < min(one.log_prob for one in hypotheses) / divisor


def strip_end(hypothesis: Hypothesis) -> Hypothesis:
    """Return the hypothesis without its END."""
    return replace(hypothesis, tokens=hypothesis.tokens[:-1])
