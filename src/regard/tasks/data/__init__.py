"""Data sets of text: where pairs come from, how they become numbers, how numbers become batches."""

from regard.tasks.data.batching import make_batches, filter_by_length, pad
from regard.tasks.data.dates import Dates
from regard.tasks.data.folders import load_parallel_files, load_parallel_folder, load_parallel_table
from regard.tasks.data.numbers import Numbers
from regard.tasks.data.opening import TextConfig, open_text
from regard.tasks.data.pairs import Corpus, SentencePair, ParallelText, compute_fingerprint
from regard.tasks.data.vocabularies import Vocabularies, build_vocabulary, build_vocabularies, load_vocabularies, save_vocabularies
from regard.tasks.data.vocabulary import BEGIN, END, PADDING, UNKNOWN, Vocabulary, VocabularyConfig

__all__ = [
    "BEGIN",
    "END",
    "PADDING",
    "UNKNOWN",
    "Corpus",
    "Dates",
    "Numbers",
    "SentencePair",
    "ParallelText",
    "TextConfig",
    "Vocabularies",
    "Vocabulary",
    "VocabularyConfig",
    "make_batches",
    "build_vocabulary",
    "build_vocabularies",
    "compute_fingerprint",
    "filter_by_length",
    "load_parallel_files",
    "load_parallel_folder",
    "load_parallel_table",
    "load_vocabularies",
    "open_text",
    "pad",
    "save_vocabularies",
]
