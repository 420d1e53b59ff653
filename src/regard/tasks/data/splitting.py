"""Parts of a corpus that have no sentence in common, on either side."""

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Sequence

from regard.errors import wrong
from regard.tasks.data.pairs import Corpus, Pair

HELD_OUT = 0.02  # of the pairs, for validation and for the test each
LEAST = 3


def divided(pairs: Sequence[Pair], notes: Sequence[str] = (), share: float = HELD_OUT) -> Corpus:
    """Training, validation and test from one list of pairs.

    Pairs that share a sentence, or one that differs only in case and punctuation, stay together: a test sentence
    whose other translation was trained on would be no test. Where a group goes depends on its own text alone,
    not on the order of the file.
    """
    groups = sorted(connected(pairs), key=lambda group: min(number(pairs[index]) for index in group))
    check_enough(len(groups), "to train on, validate and test")
    wanted = max(1, int(share * len(pairs)))
    held_out: list[list[Pair]] = []
    for _ in ("validation", "test"):
        part: list[Pair] = []
        while len(part) < wanted and len(groups) > 1:
            part += [pairs[index] for index in groups.pop(0)]
        held_out.append(part)
    train = [pairs[index] for index in sorted(index for group in groups for index in group)]
    return Corpus(train, held_out[0], {"test": held_out[1]}, tuple(notes))


def check_enough(count: int, purpose: str) -> None:
    """Raises where there is next to nothing."""
    if count < LEAST:
        pairs = "pair" if count == 1 else "pairs"
        fix = "add more; a translator needs thousands"
        raise wrong("data", f"{count} {pairs} {purpose}", f"at least {LEAST} that differ", fix)


def connected(pairs: Sequence[Pair]) -> list[list[int]]:
    """The pairs by number, in groups that share no sentence with each other."""
    parents = list(range(len(pairs)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    first: dict[tuple[int, str], int] = {}
    for index, pair in enumerate(pairs):
        for side, text in enumerate(pair):
            parents[root(index)] = root(first.setdefault((side, bare(text)), index))
    groups: dict[int, list[int]] = defaultdict(list)
    for index in range(len(pairs)):
        groups[root(index)].append(index)
    return list(groups.values())


def bare(text: str) -> str:
    """The letters and digits of a text; all of it where there are none."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or text


def number(pair: Pair) -> bytes:
    """A number that looks random and depends on the pair alone."""
    return hashlib.blake2b("\t".join(pair).encode(), digest_size=8).digest()


def without(pairs: Sequence[Pair], held_out: Sequence[Pair]) -> list[Pair]:
    """The pairs that have no sentence in common with those of `held_out`."""
    sources = {bare(pair.source) for pair in held_out}
    targets = {bare(pair.target) for pair in held_out}
    return [pair for pair in pairs if bare(pair.source) not in sources and bare(pair.target) not in targets]
