"""Pairs for the vocabularies of a translator, and pairs to test it on."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.tasks.data import ParallelText, SentencePair, TextConfig, open_text
from regard.tasks.data.phrases import PHRASES
from regard.tasks.data.text_files import CompletePairs, locate_data, read_aligned, read_table
from regard.tasks.data.text_source import parse_column

# Generated text, and how many pairs of it a vocabulary is made from: enough for the rarest script.
SAMPLE = 2**18  # pairs of files, at most: more would hardly change what is learned
ENDLESS = {"dates": 24_000, "numbers": 4_000, PHRASES: 4_000}


def collect_vocabulary_pairs(text: ParallelText, name: str) -> Sequence[SentencePair]:
    """Return the pairs that a vocabulary is built from: all of a file, evenly spaced ones of a large one, or many
    generated ones.
    """
    training, epoch = text.load_training(0), 0
    pairs = training[:: math.ceil(len(training) / SAMPLE) or 1]
    while len(pairs) < ENDLESS.get(name, 0):
        epoch += 1
        pairs = [*pairs, *text.load_training(epoch)]
    return pairs


def load_test_sets(config: TextConfig) -> Mapping[str, Sequence[SentencePair]]:
    """Return pairs to test on: all of a named file, or what other text holds out."""
    source, _, target = (part.strip() for part in config.text.partition(","))
    if source in ENDLESS or (not target and locate_data(Path(source)).is_dir()):
        return open_text(config).tests
    if target:
        pairs = CompletePairs(read_aligned(locate_data(Path(source)), locate_data(Path(target))), Path(source).name)
    else:
        numbers = [
            name if name.isdecimal() else default for name, default in ((config.source, "1"), (config.target, "2"))
        ]
        columns = parse_column(numbers[0]), parse_column(numbers[1])
        pairs = CompletePairs(read_table(locate_data(Path(source)), columns), Path(source).name)
    return {Path(source).name.split(".")[0]: list(pairs)}
