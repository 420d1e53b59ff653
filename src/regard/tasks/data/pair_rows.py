"""Sentence pairs as rows of bytes in one array or file, and hashes by which pairs and sentences are compared."""

import hashlib
import re
import string
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy
from numpy.typing import ArrayLike

from regard.tasks.data.pairs import SentencePair
from regard.tasks.data.row_files import RowWriter
from regard.tasks.data.rows import Array, Rows
from regard.training.task import LazySequence

BLOCK = 2**13  # pairs that are held as objects at once
SIGNS = re.compile(r"[\W_]+")  # all but letters and digits, as `str.isalnum` tells them
ASCII_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())
LOWER = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())


class PairHashes(NamedTuple):
    """Hashes of 64 bits: of each pair as it is written, and of the letters and digits of either side."""

    pairs: Array
    sources: Array
    targets: Array

    def select(self, chosen: Any) -> "PairHashes":
        """Return the hashes of some pairs."""
        return PairHashes(*(part[chosen] for part in self))


class PairRows(LazySequence[SentencePair]):
    """Pairs that are decoded when they are asked for, from rows with the bytes of each (`SentencePair.to_bytes`)."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def select(self, chosen: ArrayLike | slice) -> "PairRows":
        """Return some of the pairs."""
        return PairRows(self.rows.select(chosen))

    def __len__(self) -> int:
        return len(self.rows)

    def make(self, index: int) -> SentencePair:
        return decode_pair(self.rows[index].tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(tuple.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]


def decode_pair(content: bytes) -> SentencePair:
    """Return the pair that `SentencePair.to_bytes` wrote.

    >>> decode_pair(SentencePair("one", "eins").to_bytes())
    SentencePair(source='one', target='eins')
    """
    source, _, target = content.decode().partition("\t")
    return SentencePair(source, target[:-1])


def collect_pairs(pairs: Iterable[SentencePair], writer: RowWriter | None = None) -> tuple[PairRows, PairHashes]:
    """Return all pairs as rows, of memory or of the writer's file; few of them are objects at a time."""
    writer, hashes = writer or RowWriter("uint8"), bytearray()
    for block in iterate_blocks(pairs):
        rows = [pair.to_bytes() for pair in block]
        writer.append(numpy.frombuffer(b"".join(rows), numpy.uint8), numpy.array([len(row) for row in rows]))
        hashes += b"".join(hash_block(block, rows))
    table = numpy.frombuffer(hashes, dtype=">u8").reshape(-1, 3)
    native = table.byteswap(inplace=True).view(numpy.uint64) if sys.byteorder == "little" else table
    return PairRows(writer.finish()), PairHashes(*native.T)


def iterate_blocks(pairs: Iterable[SentencePair]) -> Iterator[list[SentencePair]]:
    """Yield the pairs in lists of bounded length."""
    following = iter(pairs)
    while block := list(islice(following, BLOCK)):
        yield block


def hash_block(pairs: Iterable[SentencePair], rows: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the three hashes of each pair."""
    for pair, row in zip(pairs, rows, strict=True):
        yield hash_bytes(row[:-1])
        yield hash_bytes(normalize_to_bytes(pair.source))
        yield hash_bytes(normalize_to_bytes(pair.target))


def hash_bytes(content: bytes | memoryview) -> bytes:
    """Return a hash of 8 bytes."""
    return hashlib.blake2b(content, digest_size=8).digest()


def normalize_text(text: str) -> str:
    """Return the letters and digits of a text in lower case; all of it if there are none.

    >>> normalize_text("Über 1,000!"), normalize_text("?!")
    ('über1000', '?!')
    """
    return SIGNS.sub("", unicodedata.normalize("NFKC", text).casefold()) or text


def normalize_to_bytes(text: str) -> bytes:
    """Return `normalize_text` of a text, in bytes: of ASCII in a tenth of the time."""
    if not text.isascii():
        return normalize_text(text).encode()
    content = text.encode()
    return content.translate(LOWER, ASCII_SIGNS) or content
