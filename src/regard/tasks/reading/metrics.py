"""The metric of SQuAD 1.1: exact match and F1 of normalized answers, the best over the answers of people.

Answers in Chinese or Japanese have no words between blanks. They are scored by character, as CMRC 2018 does
(Cui et al. 2019): without punctuation, F1 over the longest run of characters that both share.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence

from regard.tasks.data.segmentation import has_unspaced
from regard.tasks.data.words import find_words

ARTICLES = re.compile(r"\b(a|an|the)\b")
MARKS = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Return an answer in lower case, without marks and articles, with single blanks: in the authors' order.

    >>> normalize_answer(" The  U.S.'s  An-swer!")
    'uss answer'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(MARKS)).split())


def split_answer(text: str) -> list[str]:
    """Return the characters of a Chinese answer, and its words of other scripts, in lower case without punctuation.

    >>> split_answer("《NBA》联赛，2018年")
    ['nba', '联', '赛', '2018', '年']
    """
    words = (word.text.lower() for word in find_words(text))
    return [word for word in words if any(map(str.isalnum, word))]


def exact_match(answer: str, right: str) -> float:
    """Return 1 if both are the same after normalizing, else 0."""
    if has_unspaced(right):
        return float(split_answer(answer) == split_answer(right))
    return float(normalize_answer(answer) == normalize_answer(right))


def f1(answer: str, right: str) -> float:
    """Return the harmonic mean of precision and recall over the words of both, as bags; 0 if they share none.

    >>> f1("the green cat", "green old cat"), f1("北京的", "在北京")
    (0.8, 0.666...)
    """
    if has_unspaced(right):
        own, others = split_answer(answer), split_answer(right)
        shared = measure_longest_run(own, others)
    else:
        own, others = normalize_answer(answer).split(), normalize_answer(right).split()
        shared = sum((Counter(own) & Counter(others)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(own), shared / len(others)
    return 2 * precision * recall / (precision + recall)


def measure_longest_run(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest run that two sequences share.

    >>> measure_longest_run("abcde", "xbcdx")
    3
    """
    longest, row = 0, [0] * (len(other) + 1)
    for token in one:
        # From the end, so that row[place] is still that of the token before.
        for place in range(len(other), 0, -1):
            row[place] = row[place - 1] + 1 if token == other[place - 1] else 0
        longest = max(longest, *row)
    return longest


def compute_sums(answers: Sequence[str], right: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return sums over questions: the best match of each with one of the right answers."""
    pairs = list(zip(answers, right, strict=True))
    return {
        "questions": float(len(pairs)),
        "exact": sum(max(exact_match(one, other) for other in others) for one, others in pairs),
        "shared": sum(max(f1(one, other) for other in others) for one, others in pairs),
    }


def compute_metrics(total: Mapping[str, float]) -> dict[str, float]:
    """Return percentages from such sums."""
    count = max(1.0, total["questions"])
    return {"em": 100 * total["exact"] / count, "f1": 100 * total["shared"] / count}
