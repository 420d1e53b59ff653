"""Notes on the splits of data: how large each is, and what two of them share."""

from collections.abc import Hashable, Iterable, Mapping


def describe_sizes(
    noun: str, training: int, validation: int, tests: Mapping[str, int], *, endless: bool = False
) -> str:
    """Return the sizes of all splits in one sentence.

    >>> describe_sizes("pairs", 1900, 50, {"test": 50})
    '1,900 pairs for training, 50 for validation, 50 for test'
    >>> describe_sizes("clips", 400, 10, {"alone": 30}, endless=True)
    '400 clips for training in each epoch, 10 for validation, 30 for test (alone)'
    """
    first = f"{training:,} {noun} for training" + (" in each epoch" if endless else "")
    held_out = {"validation": validation} | {label_test(name): count for name, count in tests.items()}
    return ", ".join([first, *(f"{count:,} for {name}" for name, count in held_out.items())])


def label_test(test: str) -> str:
    """Return the name of a test split, for a sentence."""
    return test if test.startswith("test") else f"test ({test})"


def describe_overlaps(noun: str, trained: Iterable[Hashable], held_out: Mapping[str, Iterable[Hashable]]) -> list[str]:
    """Return a note on each held-out split that shares items with the training set.

    >>> describe_overlaps("pairs", ["a", "b"], {"validation": ["c"], "test": ["a", "d", "a"]})
    ['2 of the 3 pairs for test are trained on too']
    """
    known, notes = set(trained), []
    for name, items in held_out.items():
        own = list(items)
        notes += describe_overlap(noun, name, sum(item in known for item in own), len(own))
    return notes


def describe_overlap(noun: str, name: str, shared: int, count: int) -> list[str]:
    """Return a note on a held-out split of which some items are in the training set, if there are any."""
    part = name if name == "validation" else label_test(name)
    verb = "is" if shared == 1 else "are"
    return [f"{shared:,} of the {count:,} {noun} for {part} {verb} trained on too"] if shared else []
