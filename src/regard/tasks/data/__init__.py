"""Data sets of text: where pairs come from, how they become token ids, how these become batches."""

from regard.tasks.data.batches import filter_by_length, make_batches, pad
from regard.tasks.data.corpus_files import load_parallel_files, load_parallel_folder, load_parallel_table
from regard.tasks.data.dates import Dates
from regard.tasks.data.numbers import Numbers
from regard.tasks.data.pairs import Corpus, ParallelText, SentencePair
from regard.tasks.data.text_source import TextConfig, open_text
from regard.tasks.data.vocabularies import (
    Vocabularies,
    build_vocabularies,
    build_vocabulary,
    load_vocabularies,
    save_vocabularies,
)
from regard.tasks.data.vocabulary import BEGIN, END, PADDING, UNKNOWN, Vocabulary, VocabularyConfig

__all__ = [
    "BEGIN",
    "END",
    "PADDING",
    "UNKNOWN",
    "Corpus",
    "Dates",
    "Numbers",
    "ParallelText",
    "SentencePair",
    "TextConfig",
    "Vocabularies",
    "Vocabulary",
    "VocabularyConfig",
    "build_vocabularies",
    "build_vocabulary",
    "filter_by_length",
    "load_parallel_files",
    "load_parallel_folder",
    "load_parallel_table",
    "load_vocabularies",
    "make_batches",
    "open_text",
    "pad",
    "save_vocabularies",
]
