"""Parts of a corpus that have no sentence in common, on either side."""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Sequence

from regard.errors import wrong
from regard.tasks.data.pairs import Corpus, SentencePair

HELD_OUT = 0.02  # of the pairs, for validation and for the test each
SMALL_HELD_OUT = 0.1  # of few pairs, up to ENOUGH of them: two in a hundred would measure nothing
ENOUGH = 50
LEAST = 3
Group = list[int]  # the numbers of pairs that stay together


def split_corpus(pairs: Sequence[SentencePair], notes: Sequence[str] = (), share: float | None = None) -> Corpus:
    """Split one list of pairs into training, validation and test.

    Pairs that share a sentence, or one that differs only in case and punctuation, stay together: a test sentence
    whose other translation was trained on would not test anything. The part that a group goes to depends on its own
    text alone, not on the order of the file, and not on its size unless it is larger than what is wanted: such a group
    is trained on. Added lines move a group only if they join it, or if it was among the last that a part had room for.
    """
    groups = sorted(group_connected_pairs(pairs), key=lambda group: hash_group(pairs, group))
    check_enough(len(groups), "to train on, validate and test")
    wanted = compute_split_size(groups, compute_share(len(pairs)) if share is None else share * len(pairs))
    largest = max(map(len, groups))
    held_out: list[list[SentencePair]] = []
    for parts_to_come in (2, 1):
        chosen = fill_split(groups, wanted, leave=parts_to_come)
        groups = [group for group in groups if group[0] not in chosen]
        held_out.append([pairs[index] for group in chosen.values() for index in group])
    train = [pairs[index] for index in sorted(index for group in groups for index in group)]
    if largest > wanted and largest > 1:
        notes = (*notes, f"{largest:,} of the {len(pairs):,} pairs are joined by sentences they share: trained on")
    return Corpus(train, held_out[0], {"test": held_out[1]}, tuple(notes), cut=True)


def compute_share(pairs: int) -> float:
    """Return how many pairs are held out for validation, and as many for the test: a larger share of few.

    >>> compute_share(60), compute_share(3_000), compute_share(30_000)
    (6.0, 60.0, 600.0)
    """
    return max(HELD_OUT * pairs, min(float(ENOUGH), SMALL_HELD_OUT * pairs))


def compute_split_size(groups: Sequence[Group], share: float) -> int:
    """Return how many pairs a part gets: its share, or half of those in groups that are small enough, if few are.

    Otherwise validation would take them all, and leave the test a handful.
    """
    wanted = max(1, int(share))
    small = sum(len(group) for group in groups if len(group) <= wanted)
    return max(1, min(wanted, small // 2))


def fill_split(groups: Sequence[Group], wanted: int, *, leave: int) -> dict[int, Group]:
    """Return the first groups for which there is room, by their first pair; if there is none, the smallest of all.

    So many groups are left for the parts to come, whatever is wanted.
    """
    chosen: dict[int, Group] = {}
    count = 0
    for group in groups:
        if count + len(group) <= wanted and len(groups) - len(chosen) > leave:
            chosen[group[0]] = group
            count += len(group)
    smallest = min(groups, key=len)
    return chosen or {smallest[0]: smallest}


def check_enough(count: int, purpose: str) -> None:
    """Raise if there are too few pairs."""
    if count < LEAST:
        pairs = "pair" if count == 1 else "pairs"
        fix = "add more; a translator needs thousands"
        raise wrong("data", f"{count} {pairs} {purpose}", f"at least {LEAST} that differ", fix)


def group_connected_pairs(pairs: Sequence[SentencePair]) -> list[Group]:
    """Return the indices of pairs, in groups that share no sentence with each other."""
    parents = list(range(len(pairs)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    first: dict[tuple[int, str], int] = {}
    for index, pair in enumerate(pairs):
        for side, text in enumerate(pair):
            parents[root(index)] = root(first.setdefault((side, normalize_text(text)), index))
    groups: dict[int, Group] = defaultdict(list)
    for index in range(len(pairs)):
        groups[root(index)].append(index)
    return list(groups.values())


def normalize_text(text: str) -> str:
    """Return the letters and digits of a text in lower case; all of it if there are none."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or text


def hash_group(pairs: Sequence[SentencePair], group: Group) -> bytes:
    """Return a hash of all distinct pairs of a group.

    The smallest number of its pairs would be the smaller the more there are, and the largest groups come first.
    """
    numbers = sorted({hash_pair(pairs[index]) for index in group})
    return hashlib.blake2b(b"".join(numbers), digest_size=8).digest()


def hash_pair(pair: SentencePair) -> bytes:
    """Return a hash of a pair."""
    return hashlib.blake2b("\t".join(pair).encode(), digest_size=8).digest()


def exclude_overlaps(pairs: Sequence[SentencePair], held_out: Sequence[SentencePair]) -> list[SentencePair]:
    """Return the pairs that have no sentence in common with those of `held_out`."""
    sources = {normalize_text(pair.source) for pair in held_out}
    targets = {normalize_text(pair.target) for pair in held_out}
    return [
        pair
        for pair in pairs
        if normalize_text(pair.source) not in sources and normalize_text(pair.target) not in targets
    ]
