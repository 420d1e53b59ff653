"""How good translations are: BLEU (Papineni et al. 2002) and chrF (Popović 2015) by sacrebleu, and exact matches."""

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

from regard.errors import import_package, wrong
from regard.tasks.data.segmentation import has_unspaced

Tokenizer = Literal["auto", "13a", "none", "intl", "zh", "char"]
ORDERS = range(1, 5)  # n-grams of one to four words


class MetricScore(NamedTuple):
    """A number, and how it was computed, so that others can compute the same."""

    value: float
    signature: str


class TranslationReport(NamedTuple):
    """The scores of the translations of one test set."""

    sentences: int
    exact: float  # percent
    scores: Mapping[str, MetricScore]


def score_translations(
    hypotheses: Sequence[str], references: Sequence[str], tokenizer: Tokenizer, language: str | None = None
) -> TranslationReport:
    """Return all scores of a test set, with sacrebleu's signatures.

    A `language` means that both are Moses tokens of that language. BLEU of text that was put together from them
    then stands beside BLEU of the tokens, because only the former can be compared with what others report.
    """
    sacrebleu = import_package("sacrebleu", "text")
    exact = 100 * count_matches(hypotheses, references) / max(1, len(references))
    bleu = sacrebleu.BLEU(tokenize=choose_tokenizer(tokenizer, references), force=True)
    figures = {
        "BLEU": compute_score(bleu, hypotheses, references),
        "chrF": compute_score(sacrebleu.CHRF(), hypotheses, references),
    }
    if language:
        texts = [detokenize_lines(lines, language) for lines in (hypotheses, references)]
        score, signature = compute_score(sacrebleu.BLEU(), *texts)
        figures["BLEU detokenized"] = MetricScore(
            score, f"{signature}|detok:{language}.sacremoses.{version('sacremoses')}"
        )
    return TranslationReport(len(references), exact, figures)


def choose_tokenizer(tokenizer: Tokenizer, references: Sequence[str]) -> Tokenizer:
    """Return the tokenizer of BLEU: zh, which counts characters, if that is `auto` and the references are Chinese.

    >>> choose_tokenizer("auto", ["一只狗。"]), choose_tokenizer("auto", ["a dog"]), choose_tokenizer("intl", ["狗"])
    ('zh', '13a', 'intl')
    """
    if tokenizer != "auto":
        return tokenizer
    return "zh" if 2 * sum(map(has_unspaced, references)) > len(references) else "13a"


def detokenize_lines(lines: Sequence[str], language: str) -> list[str]:
    """Return text from Moses tokens.

    >>> detokenize_lines(["der hund &apos; rex &apos; , groß ."], "de")
    ["der hund 'rex', groß."]
    """
    if not re.fullmatch("[a-z]{2,3}", language):  # the detokenizer takes any word for a language without exceptions
        raise wrong("detokenize", language, "the code of a language", "write en, de, fr or another")
    detokenizer = import_package("sacremoses", "text").MosesDetokenizer(lang=language)
    return [str(detokenizer.detokenize(line.split())) for line in lines]


def compute_score(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> MetricScore:
    """Return the score of all hypotheses by one metric of sacreBLEU."""
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return MetricScore(float(score), str(metric.get_signature()))


def count_matches(hypotheses: Sequence[str], references: Sequence[str]) -> int:
    """Return how many translations equal their references."""
    return sum(map(str.__eq__, hypotheses, references))


def sum_matches(hypotheses: Sequence[str], references: Sequence[str], tokenizer: Tokenizer) -> dict[str, float]:
    """Return counts that BLEU and exact match are computed from: counts add over parts of a test set."""
    counted = {"sentences": float(len(references)), "matches": float(count_matches(hypotheses, references))}
    if not references:
        return counted
    bleu = import_package("sacrebleu", "text").BLEU(tokenize=choose_tokenizer(tokenizer, references), force=True)
    score = bleu.corpus_score(list(hypotheses), [list(references)])
    grams = zip(ORDERS, score.counts, score.totals, strict=True)
    for order, right, total in grams:
        counted |= {f"right {order}": float(right), f"total {order}": float(total)}
    return counted | {"length": float(score.sys_len), "reference length": float(score.ref_len)}


def compute_metrics(total: Mapping[str, float]) -> dict[str, float]:
    """Return BLEU and the percentage of exact matches, from such sums."""
    values = {order: (int(total[f"right {order}"]), int(total[f"total {order}"])) for order in ORDERS}
    bleu = import_package("sacrebleu", "text").BLEU.compute_bleu(
        correct=[right for right, _ in values.values()],
        total=[count for _, count in values.values()],
        sys_len=int(total["length"]),
        ref_len=int(total["reference length"]),
        smooth_method="exp",
    )
    return {"bleu": float(bleu.score), "exact": 100 * total["matches"] / total["sentences"]}
