"""How good translations are: BLEU (Papineni et al. 2002) and chrF (Popović 2015) by sacrebleu, and exact matches."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from regard.errors import wrong

Tokenizer = Literal["13a", "none", "intl", "zh", "char"]
ORDERS = range(1, 5)  # n-grams of one to four words


class Figure(NamedTuple):
    """A number, and how it was computed, so that others can compute the same."""

    value: float
    signature: str


class Report(NamedTuple):
    """What there is to say about the translations of one test set."""

    sentences: int
    bleu: Figure
    chrf: Figure
    exact: float  # percent


def report(hypotheses: Sequence[str], references: Sequence[str], tokenizer: Tokenizer) -> Report:
    """All scores of a test set, with sacrebleu's signatures."""
    package = sacrebleu()
    bleu, chrf = package.BLEU(tokenize=tokenizer, force=True), package.CHRF()
    exact = 100 * matches(hypotheses, references) / max(1, len(references))
    figures = [figure(metric, hypotheses, references) for metric in (bleu, chrf)]
    return Report(len(references), figures[0], figures[1], exact)


def figure(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> Figure:
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Figure(float(score), str(metric.get_signature()))


def matches(hypotheses: Sequence[str], references: Sequence[str]) -> int:
    """How many translations are, letter by letter, what was expected."""
    return sum(map(str.__eq__, hypotheses, references))


def sums(hypotheses: Sequence[str], references: Sequence[str], tokenizer: Tokenizer) -> dict[str, float]:
    """What BLEU and exact match are made of. Such sums add over parts of a test set; scores do not."""
    counted = {"sentences": float(len(references)), "matches": float(matches(hypotheses, references))}
    if not references:
        return counted
    bleu = sacrebleu().BLEU(tokenize=tokenizer, force=True)
    score = bleu.corpus_score(list(hypotheses), [list(references)])
    grams = zip(ORDERS, score.counts, score.totals, strict=True)
    for order, right, total in grams:
        counted |= {f"right {order}": float(right), f"total {order}": float(total)}
    return counted | {"length": float(score.sys_len), "reference length": float(score.ref_len)}


def scores(total: Mapping[str, float]) -> dict[str, float]:
    """BLEU and the percentage of exact matches, of such sums."""
    values = {order: (int(total[f"right {order}"]), int(total[f"total {order}"])) for order in ORDERS}
    bleu = sacrebleu().BLEU.compute_bleu(
        correct=[right for right, _ in values.values()],
        total=[count for _, count in values.values()],
        sys_len=int(total["length"]),
        ref_len=int(total["reference length"]),
        smooth_method="exp",
    )
    return {"bleu": float(bleu.score), "exact": 100 * total["matches"] / total["sentences"]}


def sacrebleu() -> Any:
    try:
        import sacrebleu as package
    except ImportError:
        raise wrong("sacrebleu", "no such package", "it installed", "pip install 'regard[text]'") from None
    return package
