"""Where pairs go: by what they say, whatever the size of their group, and never into two parts."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from regard.tasks.data import Corpus, SentencePair, load_parallel_folder
from regard.tasks.data.groups import Groups, group_equal
from regard.tasks.data.pair_rows import collect_pairs, normalize_text
from regard.tasks.data.split_notes import describe_overlaps
from regard.tasks.data.splits import split_corpus

SETS = 40


def draw_pairs(seed: int) -> list[SentencePair]:
    """Draw pairs whose sentences repeat, from hardly ever to nearly always."""
    chance = random.Random(f"pairs {seed}")
    count, kinds = chance.choice([6, 40, 300, 2000]), chance.choice([0.4, 1.0, 3.0, 20.0])
    most = max(3, int(count * kinds))
    pairs = [SentencePair(f"s{chance.randrange(most)}", f"t{chance.randrange(most)}") for _ in range(count)]
    common = int(count * chance.choice([0.0, 0.0, 0.05, 0.3]))
    pairs[:common] = [pair._replace(target="Ok.") for pair in pairs[:common]]
    return [*pairs, SentencePair("one", "eins"), SentencePair("two", "zwei"), SentencePair("three", "drei")]


def grouped(pairs: list[SentencePair]) -> Groups:
    """Return the groups of pairs that share a sentence."""
    return group_equal(collect_pairs(pairs)[1][1:])


def parts(corpus: Corpus) -> tuple[Sequence[SentencePair], Sequence[SentencePair], Sequence[SentencePair]]:
    return corpus.train, corpus.validation, corpus.tests["test"]


@pytest.mark.parametrize("seed", range(SETS))
def test_parts_have_their_size_share_nothing_and_do_not_depend_on_the_order_of_the_file(seed: int) -> None:
    pairs, share = draw_pairs(seed), 0.02 if seed % 2 else 0.1
    corpus = split_corpus(pairs, share=share)
    train, validation, test = parts(corpus)
    assert sorted([*train, *validation, *test]) == sorted(pairs)
    for side in (0, 1):
        kinds = [{normalize_text(pair[side]) for pair in part} for part in (train, validation, test)]
        assert sum(map(len, kinds)) == len(set.union(*kinds)), "a sentence is in two parts"
    smallest = sorted(grouped(pairs).sizes.tolist())[:2]
    for part in (validation, test):
        assert 1 <= len(part) <= max(1, int(share * len(pairs)), smallest[-1])
    chance = random.Random(seed)
    other = parts(split_corpus(chance.sample(pairs, len(pairs)), share=share))
    assert [sorted(part) for part in other] == [sorted(part) for part in (train, validation, test)]


def test_a_group_that_is_larger_than_a_part_is_trained_on_and_told() -> None:
    for trial in range(20):
        pairs = [SentencePair(f"{trial} s{number}", "ok." if number < 100 else f"t{number}") for number in range(2000)]
        corpus = split_corpus(pairs)
        assert list(map(len, parts(corpus))) == [1900, 50, 50]
        assert sum(pair.target == "ok." for pair in corpus.train) == 100
        assert corpus.notes == ("100 of the 2,000 pairs are joined by sentences they share: trained on",)


@pytest.mark.parametrize("size", [1, 5])
def test_a_group_is_held_out_as_often_whatever_its_size(size: int) -> None:
    held_out, trials = 0, 120
    for trial in range(trials):
        pairs = [SentencePair(f"{trial} s{number}", "ok." if number < size else f"t{number}") for number in range(150)]
        held_out += not any(pair.target == "ok." for pair in split_corpus(pairs, share=0.1).train)
    assert abs(held_out / trials - 0.2) < 0.1, "a fifth of all groups is held out"


def test_one_group_of_nearly_everything_is_left_to_training() -> None:
    chance = random.Random("percolation")
    pairs = [SentencePair(f"s{chance.randrange(15_000)}", f"t{chance.randrange(15_000)}") for _ in range(20_000)]
    assert max(grouped(pairs).sizes) > 10_000
    assert list(map(len, parts(split_corpus(pairs)))) == [19_200, 400, 400]


def test_few_small_groups_are_shared_between_validation_and_test() -> None:
    pairs = [SentencePair(f"s{number}", f"t{number // 2}") for number in range(12)]
    pairs += [SentencePair(f"big {number}", "ok.") for number in range(988)]
    assert list(map(len, parts(split_corpus(pairs)))) == [988, 6, 6]


def test_lines_that_are_added_move_few_pairs() -> None:
    before = [SentencePair(f"s{number}", f"t{number}") for number in range(5000)]
    after = [*before, *(SentencePair(f"new {number}", f"neu {number}") for number in range(500))]
    for one, other in zip(parts(split_corpus(before))[1:], parts(split_corpus(after))[1:], strict=True):
        assert len(set(one) & set(other)) > 0.6 * len(one)


def test_held_out_pairs_that_are_trained_on_are_told(tmp_path: Path) -> None:
    texts = {"train": ("a b\nc\nd\ne\n", "A\nB\nC\nD\n"), "val": ("x\ny\n", "X\nY\n"), "test": ("A b!\nz\n", "a\nZ\n")}
    for name, (source, target) in texts.items():
        (tmp_path / f"{name}.en").write_text(source)
        (tmp_path / f"{name}.de").write_text(target)
    assert load_parallel_folder(tmp_path, "en", "de").notes == ("1 of the 2 pairs for test is trained on too",)
    (tmp_path / "val.en").unlink()
    notes = load_parallel_folder(tmp_path, "en", "de").notes
    assert notes in ((), ("1 of the 2 pairs for test is trained on too",)), "as the pair was cut for validation or not"


def test_what_two_parts_share_is_counted_for_each() -> None:
    held_out = {"validation": "abc", "test": "xyz", "spring": "a"}
    assert describe_overlaps("clips", "abd", held_out) == [
        "2 of the 3 clips for validation are trained on too",
        "1 of the 1 clips for test (spring) is trained on too",
    ]
