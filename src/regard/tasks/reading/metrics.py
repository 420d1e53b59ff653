"""The metric of SQuAD 1.1: exact match and F1 of normalized answers, the best over the answers of people."""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
MARKS = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """In lower case, without marks and articles, with single blanks: in this order, as the authors do.

    >>> normalize_answer(" The  U.S.'s  An-swer!")
    'uss answer'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(MARKS)).split())


def exact_match(said: str, right: str) -> float:
    """1 where both are the same after normalizing, else 0."""
    return float(normalize_answer(said) == normalize_answer(right))


def f1(said: str, right: str) -> float:
    """Return the harmonic mean of precision and recall over the words of both, as bags; 0 if they share none.

    >>> f1("the green cat", "green old cat")
    0.8
    """
    own, others = normalize_answer(said).split(), normalize_answer(right).split()
    shared = sum((Counter(own) & Counter(others)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(own), shared / len(others)
    return 2 * precision * recall / (precision + recall)


def compute_sums(said: Sequence[str], right: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return sums over questions: the best match of each with one of the right answers."""
    pairs = list(zip(said, right, strict=True))
    return {
        "questions": float(len(pairs)),
        "exact": sum(max(exact_match(one, other) for other in others) for one, others in pairs),
        "shared": sum(max(f1(one, other) for other in others) for one, others in pairs),
    }


def compute_metrics(total: Mapping[str, float]) -> dict[str, float]:
    """Percentages of such sums."""
    count = max(1.0, total["questions"])
    return {"em": 100 * total["exact"] / count, "f1": 100 * total["shared"] / count}
