"""Data sets of text: where pairs come from, how they become numbers, how numbers become batches."""

from regard.tasks.data.batching import batches, fitting, pad
from regard.tasks.data.dates import Dates
from regard.tasks.data.folders import from_files, from_folder, from_table
from regard.tasks.data.numbers import Numbers
from regard.tasks.data.opening import TextConfig, open_text
from regard.tasks.data.pairs import Corpus, Pair, ParallelText, fingerprint
from regard.tasks.data.vocabularies import Vocabularies, build, build_both, load_both, save_both
from regard.tasks.data.vocabulary import BEGIN, END, PADDING, UNKNOWN, Vocabulary, VocabularyConfig

__all__ = [
    "BEGIN",
    "END",
    "PADDING",
    "UNKNOWN",
    "Corpus",
    "Dates",
    "Numbers",
    "Pair",
    "ParallelText",
    "TextConfig",
    "Vocabularies",
    "Vocabulary",
    "VocabularyConfig",
    "batches",
    "build",
    "build_both",
    "fingerprint",
    "fitting",
    "from_files",
    "from_folder",
    "from_table",
    "load_both",
    "open_text",
    "pad",
    "save_both",
]
