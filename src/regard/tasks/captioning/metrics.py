"""How good captions are: BLEU-1 to BLEU-4 against all captions of an image, and how many are right word by word."""

from collections.abc import Mapping, Sequence

from regard.errors import import_package
from regard.tasks.translation.metrics import ORDERS


def compute_sums(generated: Sequence[str], captions: Sequence[tuple[str, ...]]) -> dict[str, float]:
    """Return counts that the scores are computed from: counts add over parts of a test set, scores do not."""
    matches = sum(one in right for one, right in zip(generated, captions, strict=True))
    counted = {"images": float(len(generated)), "matches": float(matches)}
    if not generated:
        return counted
    most = max(map(len, captions))
    references = [[right[place] if place < len(right) else None for right in captions] for place in range(most)]
    found = (
        import_package("sacrebleu", "text").BLEU(tokenize="none", force=True).corpus_score(list(generated), references)
    )
    for order, right, total in zip(ORDERS, found.counts, found.totals, strict=True):
        counted |= {f"right {order}": float(right), f"total {order}": float(total)}
    return counted | {"length": float(found.sys_len), "reference length": float(found.ref_len)}


def compute_metrics(total: Mapping[str, float]) -> dict[str, float]:
    """Return BLEU-1 to BLEU-4 (the last is `bleu`) and the percentage of right captions, from such sums."""
    found = {f"bleu-{most}": bleu(total, most) for most in ORDERS}
    return found | {"bleu": found["bleu-4"], "exact": 100 * total["matches"] / max(1.0, total["images"])}


def bleu(total: Mapping[str, float], most: int) -> float:
    """Return BLEU of n-grams up to `most` words, not smoothed: 0 if none is right. Papineni et al. 2002."""
    orders = range(1, most + 1)
    score = import_package("sacrebleu", "text").BLEU.compute_bleu(
        correct=[int(total[f"right {order}"]) for order in orders],
        total=[int(total[f"total {order}"]) for order in orders],
        sys_len=int(total["length"]),
        ref_len=int(total["reference length"]),
        smooth_method="none",
        max_ngram_order=most,
    )
    return float(score.score)
