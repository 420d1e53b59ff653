"""Files that chance has changed: whatever is read from them, nothing is raised but our own sentences.

`REGARD_FUZZ` is how many changes of each kind of file are tried: a few in `make test`, 20,000 now and then.
"""

import gzip
import io
import json
import os
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.datasets import Extraction, File
from regard.datasets.extraction import extract_archive
from regard.errors import RegardError

CHANGES = int(os.environ.get("REGARD_FUZZ", "40"))
INTERESTING = (b"", b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\t", b"\r\n", b"\n", b"\xed\xa0\x80", b"\x1f\x8b")
NUMBERS = (0, 1, 0x7F, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1)


def damage(content: bytes, chance: random.Random) -> bytes:
    """Return the content with a few parts cut, doubled, flipped or inserted."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5))):
        place, length = chance.randrange(len(data) + 1), chance.choice((1, 1, 4, 50))
        match chance.randrange(7):
            case 0:
                data[place : place + length] = b""
            case 1:
                data[place:place] = chance.randbytes(length)
            case 2:
                data[place : place + length] = chance.randbytes(len(data[place : place + length]))
            case 3:
                data[place:place] = chance.choice(INTERESTING) * chance.choice((1, 1, 3, 2000))
            case 4:
                data[place : place + 4] = struct.pack("<L", chance.choice(NUMBERS))
            case 5:
                data[place:] = b""
            case 6:
                data[place:place] = data[place : place + 200]
    return bytes(data)


def pack_archive(**members: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "."), data)
    return target.getvalue()


def array() -> bytes:
    target = io.BytesIO()
    np.save(target, np.arange(120.0).reshape(10, 4, 3))
    return target.getvalue()


def read_text(path: Path) -> None:
    from regard.tasks.data import load_parallel_files, load_parallel_table

    for read in (lambda: load_parallel_table(path), lambda: load_parallel_files(path, path)):
        quiet(read)


def read_points(path: Path) -> None:
    from regard.tasks.data.points import read_points

    read_points(path, "")


def read_sequences(path: Path) -> None:
    from regard.tasks.data.sequences import read_sequences

    read_sequences(path, 4)


def read_pictures(path: Path) -> None:
    from regard.tasks.data.gray_images import read_idx

    read_idx(path.parent, path.name, 3)


def read_questions(path: Path) -> None:
    from regard.tasks.reading.squad import read_squad

    read_squad(path, validation=1, test=1)


def read_captions(path: Path) -> None:
    from regard.tasks.captioning.captions import read_table

    read_table(path)


def read_images(path: Path) -> None:
    from regard.tasks.images import ImageFiles

    pictures = ImageFiles(path)
    for name in pictures.members:
        quiet(lambda name=name: pictures.read(name))  # type: ignore[misc]


def read_sounds(path: Path) -> None:
    from regard.tasks.speech.spoken_digits import read_digits

    read_digits(path, 8000)


def read_vectors(path: Path) -> None:
    from regard.tasks.reading.vectors import read_vectors

    read_vectors(path)


def read_rows(path: Path) -> None:
    from regard.tasks.vqa.questions import read_rows

    read_rows(path)


def unpack_archive(path: Path) -> None:
    extract_archive(File(path.name, "http://127.0.0.1/", extraction=Extraction("*.txt", "out")), path, path.parent)


def read_vocabulary(path: Path) -> None:
    from regard.tasks.data.vocabularies import load_vocabulary

    load_vocabulary(path.parent, path.stem)


def quiet(read: Callable[[], Any]) -> None:
    said = ""
    try:
        read()
    except RegardError as error:
        said = str(error)
    assert "\n" not in said, said
    assert len(said) < 2000


TABLE = "".join(f"Sentence {number}, über\tSatz {number}\n" for number in range(12)).encode()
ANSWERS = [{"text": "b", "answer_start": 2}]
SQUAD = json.dumps(
    {
        "data": [
            {"paragraphs": [{"context": f"a b {n}", "qas": [{"question": "q", "id": str(n), "answers": ANSWERS}]}]}
            for n in range(4)
        ]
    }
).encode()
WAV = b"RIFF" + struct.pack("<I", 236) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
WAV += b"data" + struct.pack("<I", 200) + bytes(range(200))
FILES: dict[str, tuple[bytes, Callable[[Path], None]]] = {
    "table.tsv": (TABLE, read_text),
    "table.tsv.gz": (gzip.compress(TABLE, mtime=0), read_text),
    "points.csv": (b"x,y\n" + b"".join(b"%d,%d.5\n" % (n, n) for n in range(9)), read_points),
    "series.csv": (b"x,y\n" + b"".join(b"%d,%d.5\n" % (n, n) for n in range(30)), read_sequences),
    "series.npy": (array(), read_sequences),
    "pictures-idx3": (bytes((0, 0, 8, 3)) + struct.pack(">3I", 4, 3, 3) + bytes(36), read_pictures),
    "squad.json": (SQUAD, read_questions),
    "captions.tsv": (b"train\t1.png\ta dog\ndev\t2.png\ta cat\ntest\t3.png\tone\n", read_captions),
    "images.zip": (pack_archive(a__png=b"png" * 99, b__jpg=b"jpg"), read_images),
    "recordings.zip": (pack_archive(**{f"{n}_jackson_3__wav": WAV for n in range(3)}), read_sounds),
    "set.zip": (pack_archive(a__txt=b"some text " * 99, b__txt=b"other"), unpack_archive),
    "glove.txt": (b"".join(b"word%d 0.5 1.5 %d\n" % (n, n) for n in range(9)), read_vectors),
    "rows.json": (json.dumps([["what?", "this", n] for n in range(5)]).encode(), read_rows),
    "words.json": (
        json.dumps({"format": 1, "kind": "word", "lowercase": False, "tokens": ["a", "b"]}).encode(),
        read_vocabulary,
    ),
}


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", FILES)
def test_whatever_is_changed_is_read_or_one_sentence(name: str, tmp_path: Path) -> None:
    content, read = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    if name != "recordings.zip":  # the sounds in it are made up
        read(path)
    for number in range(CHANGES):
        path.write_bytes(damage(content, random.Random(f"{name} {number}")))
        try:
            quiet(lambda: read(path))
        except Exception as error:
            raise AssertionError(f"{name}, change {number}: {type(error).__name__}: {error}") from error


def test_what_is_typed_is_read_or_one_sentence(tmp_path: Path) -> None:
    from regard.cli.input import read_lines

    content = "eins zwei\nüber drei\n\n".encode() * 4
    for number in range(CHANGES):
        (tmp_path / "input").write_bytes(damage(content, random.Random(f"typed {number}")))
        with (tmp_path / "input").open("rb") as file:
            quiet(lambda file=file: list(read_lines(file.fileno(), 3)))  # type: ignore[misc]
