"""Sentence pairs as token ids, and batches of them as tensors."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy
from torch import Tensor

from regard.tasks.data import BEGIN, END, SentencePair, Vocabularies, Vocabulary, filter_by_length
from regard.tasks.data.batches import pad_rows
from regard.tasks.data.fingerprints import digest
from regard.tasks.data.pair_rows import iterate_blocks
from regard.tasks.data.prepared_folder import Facts, prepare_folder, show_progress
from regard.tasks.data.row_files import RowWriter, map_rows
from regard.tasks.data.rows import Array, Rows, choose_dtype
from regard.tasks.data.text_corpus import StoredCorpus
from regard.tasks.data.text_files import Report, report_nothing
from regard.tasks.translation.config import SIDES


class TranslationBatch(NamedTuple):
    """Padded sentences. A source ends with END; a target begins with BEGIN too."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


class EncodedPairs(NamedTuple):
    """Pairs as token ids, each side closed by END."""

    sources: Rows
    targets: Rows
    notes: Sequence[str] = ()

    @property
    def lengths(self) -> Array:
        """Lengths of target and source, for batches in which both are alike."""
        return numpy.stack((self.targets.lengths, self.sources.lengths), axis=1)

    def select(self, chosen: Array | slice) -> "EncodedPairs":
        """Return some of the pairs."""
        return self._replace(sources=self.sources.select(chosen), targets=self.targets.select(chosen))

    def collate(self, chosen: Sequence[int]) -> TranslationBatch:
        """Return some of the pairs as a batch."""
        sources, targets = ([rows[index] for index in chosen] for rows in (self.sources, self.targets))
        return TranslationBatch(*pad_rows(sources), *pad_rows(targets, BEGIN))


def encode_pairs(pairs: Sequence[SentencePair], vocabularies: Vocabularies, limit: int) -> EncodedPairs:
    """Encode the pairs whose sides have at most `limit` tokens, with notes on the others and on lost characters."""
    return drop_long_pairs(
        write_pairs(pairs, vocabularies, [RowWriter(name) for name in list_dtypes(vocabularies)]), limit
    )


def encode_corpus(corpus: StoredCorpus, vocabularies: Vocabularies, limit: int) -> EncodedPairs:
    """Return the training pairs of a stored corpus, whose token ids are kept beside it."""
    known = [digest([vocabulary.to_bytes()]) for vocabulary in vocabularies]
    folder, dtypes = corpus.folder / f"ids-{'-'.join(known)}", list_dtypes(vocabularies)

    def build(place: Path) -> Facts:
        writers = [RowWriter(dtype, place / side) for side, dtype in zip(SIDES, dtypes, strict=True)]
        with show_progress(f"encoding {len(corpus.train):,} pairs", len(corpus.train)) as report:
            return {"notes": list(write_pairs(corpus.train, vocabularies, writers, report).notes)}

    facts = prepare_folder(folder, {"text": corpus.fingerprint, "vocabularies": known}, build)
    sources, targets = (map_rows(folder / side, dtype) for side, dtype in zip(SIDES, dtypes, strict=True))
    return drop_long_pairs(EncodedPairs(sources, targets, facts["notes"]), limit)


def list_dtypes(vocabularies: Vocabularies) -> list[str]:
    """Return the type of the token ids of each side."""
    return [choose_dtype(len(vocabulary)) for vocabulary in vocabularies]


def write_pairs(
    pairs: Sequence[SentencePair],
    vocabularies: Vocabularies,
    writers: Sequence[RowWriter],
    report: Report = report_nothing,
) -> EncodedPairs:
    """Encode pairs block by block, with notes on characters that the vocabularies do not give back."""
    lost: Counter[str] = Counter()
    try:
        for block in iterate_blocks(pairs):
            for side, (vocabulary, writer) in enumerate(zip(vocabularies, writers, strict=True)):
                rows = Rows.flatten(encode_texts([pair[side] for pair in block], vocabulary), str(writer.dtype))
                writer.append(rows.values, rows.lengths)
            lost.update(character for pair in block for character in find_lost_characters(pair, vocabularies))
            report(len(block))
        sources, targets = (writer.finish() for writer in writers)
    finally:
        for writer in writers:
            writer.close()
    return EncodedPairs(sources, targets, list(describe_lost_characters(lost, len(pairs))))


def find_lost_characters(pair: SentencePair, vocabularies: Vocabularies) -> set[str]:
    """Return the characters of a pair that the vocabularies do not give back."""
    return {lost for text, known in zip(pair, vocabularies, strict=True) for lost in known.find_lost_characters(text)}


def describe_lost_characters(lost: Mapping[str, int], pairs: int) -> Iterator[str]:
    """Yield notes on characters that the vocabularies do not give back, by the number of pairs that have them."""
    for character, count in sorted(lost.items()):
        yield f"{count:,} of the {pairs:,} pairs have {character}, which stands for a blank: it is read as one"


def drop_long_pairs(encoded: EncodedPairs, limit: int) -> EncodedPairs:
    """Return the pairs whose sides have at most `limit` tokens without END, with a note on the others."""
    kept, notes = filter_by_length(encoded.lengths - 1, limit)
    chosen = encoded if len(kept) == len(encoded.sources) else encoded.select(kept)
    return chosen._replace(notes=(*notes, *encoded.notes))


def encode_texts(texts: Sequence[str], vocabulary: Vocabulary, most: int | None = None) -> list[list[int]]:
    """Return at most `most` token ids of each text, closed by END, so that an empty text has something to attend to."""
    return [[*ids[:most], END] for ids in vocabulary.encode_all(texts)]
