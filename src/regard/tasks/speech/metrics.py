"""Error rates of transcripts."""

from collections.abc import Mapping, Sequence


def edit_distance(transcript: Sequence[object], right: Sequence[object]) -> int:
    """Return the fewest insertions, deletions and replacements between both (Levenshtein 1966).

    >>> edit_distance("kitten", "sitting")
    3
    """
    row = list(range(len(right) + 1))
    for place, one in enumerate(transcript, start=1):
        before, row[0] = row[0], place
        for column, other in enumerate(right, start=1):
            best = min(before + (one != other), row[column] + 1, row[column - 1] + 1)
            before, row[column] = row[column], best
    return row[-1]


def sum_errors(transcripts: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """Return sums over clips: errors and lengths in symbols and in words, and exact matches.

    Blanks are not symbols.
    """
    pairs = list(zip(transcripts, right, strict=True))
    symbols = [("".join(one.split()), "".join(other.split())) for one, other in pairs]
    words = [(one.split(), other.split()) for one, other in pairs]
    return {
        "clips": float(len(pairs)),
        "matches": float(sum(one == other for one, other in pairs)),
        "symbol errors": float(sum(edit_distance(*pair) for pair in symbols)),
        "symbols": float(sum(len(other) for _, other in symbols)),
        "word errors": float(sum(edit_distance(*pair) for pair in words)),
        "words": float(sum(len(other) for _, other in words)),
    }


def compute_metrics(total: Mapping[str, float]) -> dict[str, float]:
    """Return percentages from such sums: errors to symbols and to words, and clips without an error.

    >>> compute_metrics(sum_errors(["12 3", "7"], ["12 4", "7"]))
    {'error': 25.0, 'words': 33.3..., 'exact': 50.0}
    """
    return {
        "error": 100 * total["symbol errors"] / max(1.0, total["symbols"]),
        "words": 100 * total["word errors"] / max(1.0, total["words"]),
        "exact": 100 * total["matches"] / max(1.0, total["clips"]),
    }
