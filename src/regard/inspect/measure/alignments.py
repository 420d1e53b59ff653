"""Extract word alignments from attention, and score them against given ones."""

from typing import NamedTuple

from regard.algebra.shapes import Float, Tensor
from regard.errors import wrong
from regard.inspect.recording import AttentionMap

Links = frozenset[tuple[int, int]]  # (query, key) pairs


def extract_alignment(
    weights: AttentionMap | Float[Tensor, "query key"], *, head: int | None = None, threshold: float | None = None
) -> Links:
    """Return the link of each query to its largest key; or, with a `threshold`, to all keys of at least that weight.

    A query without weights has no link. Of keys with the same weight the first counts. Without a `head`, the mean over
    the heads is used.

    >>> sorted(extract_alignment(torch.tensor([[0.9, 0.1], [0.4, 0.6]])))
    [(0, 0), (1, 1)]
    """
    table = weights if isinstance(weights, Tensor) else weights.tile(head)
    if threshold is not None:
        if not 0 < threshold <= 1:
            raise wrong("threshold", threshold, "above 0, at most 1", "give the least weight of a link")
        return frozenset((int(row), int(column)) for row, column in (table >= threshold).nonzero().tolist())
    best, columns = table.max(-1)
    return frozenset((row, column) for row, column in enumerate(columns.tolist()) if best[row] > 0)


class AlignmentScores(NamedTuple):
    """Precision, recall, and the alignment error rate."""

    precision: float
    recall: float
    rate: float


def alignment_error(found: Links, sure: Links, possible: Links | None = None) -> AlignmentScores:
    r"""Return how far an alignment is from a given one.

    $$ \mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}, \qquad \mathrm{precision} =
    \frac{|A \cap P|}{|A|}, \qquad \mathrm{recall} = \frac{|A \cap S|}{|S|} $$

    with $A$ = `found`, $S$ = `sure` and $P$ = `possible`, which always contains the sure ones. Och & Ney 2003, §5.
    If nothing is found and nothing sure, the rate is 0.

    >>> alignment_error(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0)}), frozenset({(1, 1)})).rate
    0.0
    """
    both = sure if possible is None else sure | possible
    hits, near = len(found & sure), len(found & both)
    size = len(found) + len(sure)
    precision = near / len(found) if found else 1.0
    recall = hits / len(sure) if sure else 1.0
    return AlignmentScores(precision, recall, 1 - (hits + near) / size if size else 0.0)


def parse_pharaoh(line: str) -> Links:
    """Return the links of a line such as `0-0 1-2`: source first, so that (query, key) is (target, source).

    >>> sorted(parse_pharaoh("0-1 2-0"))
    [(0, 2), (1, 0)]
    """
    links = set()
    for pair in line.split():
        source, dash, target = pair.partition("-")
        if not (dash and source.isdecimal() and target.isdecimal()):
            raise wrong("links", repr(pair), "two numbers and a dash, as 0-1", "write source-target pairs, from 0")
        links.add((int(target), int(source)))
    return frozenset(links)
