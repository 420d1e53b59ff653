"""Files of pictures that claim or unpack to anything."""

import gzip
import os
import struct
from pathlib import Path

import pytest

from regard.errors import InputError
from regard.tasks.data import gray_images
from regard.tasks.data.gray_images import read_idx


def read_refusal(folder: Path) -> str:
    with pytest.raises(InputError) as raised:
        read_idx(folder, "a", 3)
    return str(raised.value)


def test_a_small_gzip_of_very_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gray_images, "get_bound", lambda *_: 10_000)
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(2**20)))
    expected = "data: got a.gz of more than 10,000 bytes, expected at most 10,000; fix: check the file"
    assert read_refusal(tmp_path) == expected


def test_damaged_files_are_one_sentence(tmp_path: Path) -> None:
    whole = gzip.compress(struct.pack(">4B3I", 0, 0, 8, 3, 1, 2, 2) + bytes(4))
    for place in range(len(whole)):
        (tmp_path / "a.gz").write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            read_idx(tmp_path, "a", 3)
        except InputError as error:
            said = str(error)
            assert said.startswith("data: got ")
    (tmp_path / "a").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 2**31, 2**31, 4))  # their product is 2^64
    assert "expected 18446744073709551616, as its head says" in read_refusal(tmp_path)
    (tmp_path / "a").unlink()
    (tmp_path / "a.gz").unlink()
    os.mkfifo(tmp_path / "a")
    assert read_refusal(tmp_path).startswith("data: got no a or a.gz in ")
