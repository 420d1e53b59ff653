"""Servers and archives that mean harm or are beyond repair: one sentence, nothing elsewhere, nothing unbounded."""

import contextlib
import io
import os
import stat
import struct
import threading
import time
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.datasets import (
    DATASETS,
    DownloadError,
    Extraction,
    File,
    PublishedDataset,
    RetryPolicy,
    connections,
    download_dataset,
)
from regard.datasets import archives as archives_module
from regard.datasets import transfer as fetching_module
from regard.datasets.archives import open_archive, read_listing_size
from regard.datasets.extraction import extract_archive
from regard.datasets.transfer import download_file
from regard.errors import InputError

QUICK = RetryPolicy(tries=3, pause=0.0, timeout=60.0)
CONTENT = bytes(range(256)) * 1200


def ask(shelf: Any, folder: Path, **changes: Any) -> bytes:
    download_file(
        File(**({"name": "a.bin", "address": f"{shelf.address}/a.bin"} | changes)), folder / "a.bin", patience=QUICK
    )
    return (folder / "a.bin").read_bytes()


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/a",
        "data:text/plain,a",
        "javascript:1",
        "//[",
        "http://[::1",
        "http://",
        "http://127.0.0.1:99999999/",
        "http://a:b:c/",
        f"http://{'a' * 300}.invalid/",
        "http://\u2603..invalid/",
    ],
)
def test_odd_addresses_are_one_sentence_asked_for_or_sent_to(shelf: Any, tmp_path: Path, address: str) -> None:
    if address.isascii():
        shelf.odd = [(302, {"Location": address}, b"")] * 9
        with pytest.raises(DownloadError, match=r"^a\.bin: got .*, expected .*; fix: "):
            ask(shelf, tmp_path)
    with pytest.raises(DownloadError, match=r"^a\.bin: got .*, expected .*; fix: "):
        ask(shelf, tmp_path, address=address)
    assert not (tmp_path / "a.bin").exists()


def test_a_server_that_sends_us_round_and_round_is_left(shelf: Any, tmp_path: Path) -> None:
    shelf.odd = [(302, {"Location": f"/{number}"}, b"") for number in range(99)]
    with pytest.raises(DownloadError, match=r"^a\.bin: got 302 [^\n]*infinite loop[^\n]*; fix: look for it there"):
        ask(shelf, tmp_path)
    assert len(shelf.asked) < 10
    shelf.odd = [(302, {"Location": "/a.bin?again"}, b""), (302, {"Location": "/a.bin"}, b"")]
    assert ask(shelf, tmp_path) == CONTENT


def test_nothing_without_a_sum_is_followed_from_https_to_http() -> None:
    from http.client import HTTPMessage
    from urllib.request import Request

    from regard.datasets.redirects import RedirectHandler

    going = (Request("https://a.invalid/"), io.BytesIO(), 302, "", HTTPMessage(), "http://b.invalid/")
    with pytest.raises(ValueError, match="not encrypted"):
        RedirectHandler(File("a", "https://a.invalid/")).redirect_request(*going)
    assert RedirectHandler(File("a", "https://a.invalid/", 3, "00")).redirect_request(*going) is not None


@pytest.mark.parametrize("digits", ["9" * 5000, "9" * 30, "-5", "1e3", "", "٣", "0x10"])
def test_odd_sizes_are_one_sentence_or_no_harm(shelf: Any, tmp_path: Path, digits: str) -> None:
    head = {"Content-Length": digits} if digits.isascii() else {}
    shelf.odd = [(200, head, CONTENT)] * 9
    try:
        assert ask(shelf, tmp_path) == CONTENT
    except DownloadError as error:
        said = str(error)
    else:
        said = ""
    assert len(said) < 400
    (tmp_path / "a.bin").unlink(missing_ok=True)
    (tmp_path / ".a.bin.part").write_bytes(b"abc")
    shelf.odd = [(206, {"Content-Range": f"bytes {digits if digits.isascii() else '7'}-{digits!r}/1"}, b"x")] * 99
    with pytest.raises(DownloadError):
        ask(shelf, tmp_path, sha256="00")


def test_a_download_of_unknown_size_ends(shelf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching_module, "DOWNLOAD", 100_000)
    for announced in (True, False):
        shelf.announce = announced
        with pytest.raises(DownloadError, match=r"a\.bin: got .*bytes, expected at most 100000 bytes from http"):
            ask(shelf, tmp_path)
        assert (tmp_path / ".a.bin.part").stat().st_size <= 100_000


@pytest.mark.parametrize("tag", ['"two"', 'W/"two"', ""])
def test_a_part_of_another_file_is_not_appended(shelf: Any, tmp_path: Path, tag: str) -> None:
    """The server forgets If-Range: what it sends is the rest of another file."""
    shelf.cut = [70_000]
    other = CONTENT[::-1]

    def change() -> None:
        if len(shelf.asked) == 2:
            shelf.files["/a.bin"], shelf.tag = other, tag
            head = {"Content-Range": f"bytes 70000-{len(other) - 1}/{len(other)}"} | ({"ETag": tag} if tag else {})
            shelf.odd = [(206, head, other[70_000:])]

    shelf.hold = change
    assert ask(shelf, tmp_path) == other


def test_another_part_than_was_asked_for_is_not_kept(shelf: Any, tmp_path: Path) -> None:
    shelf.cut = [70_000]
    shelf.hold = lambda: shelf.odd.append((206, {"Content-Range": "bytes 5-9/9", "ETag": '"one"'}, b"abcde")) if (
        len(shelf.asked) == 2
    ) else None  # fmt: skip
    assert ask(shelf, tmp_path) == CONTENT


def test_what_has_neither_tag_nor_sum_begins_again(shelf: Any, tmp_path: Path) -> None:
    shelf.cut, shelf.tag = [70_000], ""
    assert ask(shelf, tmp_path) == CONTENT
    assert shelf.asked == ["", ""]


@pytest.mark.parametrize("code", [202, 203, 204, 205, 207, 226, 299])
def test_answers_that_are_no_file_are_refused(shelf: Any, tmp_path: Path, code: int) -> None:
    shelf.odd = [(code, {"Content-Length": "2"}, b"no")]
    with pytest.raises(DownloadError, match=rf"a\.bin: got {code} .*, expected the file at"):
        ask(shelf, tmp_path)


def test_odd_tags_are_not_sent_back(shelf: Any, tmp_path: Path) -> None:
    for tag in ("a\tb", '"' + "x" * 5000 + '"', "caf\xe9"):
        shelf.tag, shelf.cut = tag, [70_000]
        assert ask(shelf, tmp_path) == CONTENT
        (tmp_path / "a.bin").unlink()
    (tmp_path / ".a.bin.part").write_bytes(b"abc")
    (tmp_path / ".a.bin.tag").write_bytes(b"evil\r\nHost: other\xff")
    shelf.tag = '"one"'
    assert ask(shelf, tmp_path) == CONTENT


def test_a_pipe_in_the_place_of_a_part_is_one_sentence(shelf: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".a.bin.part")
    with pytest.raises(
        DownloadError, match="got something that is not a plain file, expected a place for the download"
    ):
        ask(shelf, tmp_path)


def test_what_no_sum_is_known_of_is_told_and_bounded(
    regard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    listed = regard("data").output
    for one in DATASETS:
        without = [file for file in one.files if not file.has_checksum]
        assert bool(one.warning) == bool(without)
        assert ("unencrypted" in one.warning) == any(file.address.startswith("http:") for file in without)
        assert not one.warning or one.warning in listed
    assert [one.name for one in DATASETS if "unencrypted" in one.warning] == ["flickr8k"]


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b'{"set.zip": 3}', b'{"set.zip": {"members": [1, null]}}', b"\xff"]
)
def test_a_record_beyond_repair_is_none(shelf: Any, tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".regard.json").write_bytes(content)
    plain = PublishedDataset("small", "", "free", "", (File("a.bin", f"{shelf.address}/a.bin"),))
    assert len(list(download_dataset(plain, tmp_path, patience=QUICK))) == 1


def pack_archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED, mode: int = 0) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in members:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = method
            entry.external_attr = mode << 16
            archive.writestr(entry, data)
    return target.getvalue()


def change_entry(archive: bytes, place: int, value: bytes, central: bytes = b"PK\1\2") -> bytes:
    """Return the archive with other bytes in the first entry of its list."""
    begin = archive.index(central) + place
    return archive[:begin] + value + archive[begin + len(value) :]


WHOLE = pack_archive(("a.txt", b"some text " * 500))
BAD: dict[str, tuple[bytes, str]] = {
    "encrypted": (change_entry(WHOLE, 8, b"\1\0"), "which is encrypted, expected no password"),
    "unknown method": (change_entry(WHOLE, 10, b"\x63\0"), "packed by method 99, expected deflated or stored"),
    "lzma": (pack_archive(("a.txt", b"a" * 999), method=zipfile.ZIP_LZMA), "packed by method 14"),
    "bzip2": (pack_archive(("a.txt", b"a" * 999), method=zipfile.ZIP_BZIP2), "packed by method 12"),
    "link": (
        pack_archive(("a.txt", b"/etc/passwd"), mode=stat.S_IFLNK | 0o777),
        "a link or a device, expected plain files",
    ),
    "device": (pack_archive(("a.txt", b""), mode=stat.S_IFCHR | 0o666), "a link or a device, expected plain files"),
    "promises much": (
        change_entry(WHOLE, 24, struct.pack("<L", 2**20)),
        "5000 bytes of 'a.txt' in the place of 1048576",
    ),
    "promises little": (change_entry(WHOLE, 24, struct.pack("<L", 7)), "a damaged archive"),
    "cut": (WHOLE[:-9], "a damaged archive"),
    "flipped": (WHOLE[:50] + bytes(byte ^ 0xFF for byte in WHOLE[50:60]) + WHOLE[60:], "a damaged archive"),
    "no zip": (b"not a zip", "a damaged archive"),
    "empty": (b"", "a damaged archive"),
    "twice": (pack_archive(("a/b.txt", b"1"), ("c/b.txt", b"2")), "2 members under 1 names, expected a name for each"),
    "hidden": (pack_archive((".regard.json.txt", b"{}")), "a member named '.regard.json.txt', expected names of files"),
    "dots": (pack_archive(("x/...txt", b"1")), "a member named"),
    "long name": (pack_archive((f"{'n' * 300}.txt", b"1")), "a member named"),
    "odd name": (pack_archive(("a\nb.txt", b"1")), "a member named"),
    "backslashes": (pack_archive(("..\\..\\b.txt", b"1")), "a member named"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", BAD)
def test_a_bad_archive_is_one_sentence_and_nothing_of_it_is_kept(tmp_path: Path, name: str) -> None:
    data, sentence = BAD[name]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "set.zip").write_bytes(data)
    file = File("set.zip", "http://127.0.0.1/", extraction=Extraction("*.txt"))
    with pytest.raises(DownloadError, match=r"^\S+: got .*, expected .*; fix: ") as caught:
        extract_archive(file, tmp_path / "in" / "set.zip", tmp_path / "in")
    assert sentence in str(caught.value)
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "set.zip"]


def test_members_go_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "set.zip").write_bytes(
        pack_archive(("../../up.txt", b"1"), ("/etc/root.txt", b"2"), ("a/b.txt", b"3"))
    )
    extract_archive(File("set.zip", "", extraction=Extraction("*.txt")), tmp_path / "in" / "set.zip", tmp_path / "in")
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.txt")}
    assert found == {"in/up.txt", "in/root.txt", "in/b.txt"}


def test_a_long_list_of_members_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 2**24 + 1, 0, 0)
    with path.open("wb") as file:
        file.truncate(2**24 + 1)
        file.seek(0, os.SEEK_END)
        file.write(end)
    tracemalloc.start()
    with pytest.raises(InputError, match=r"many.zip: got a list of members of 16,777,217 bytes, expected at most"):
        open_archive(path)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_the_list_is_found_in_large_archives_too(tmp_path: Path) -> None:
    path = tmp_path / "large.zip"
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, 2**40, 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 2**32 - 1, 2**32 - 1, 0)
    path.write_bytes(record + locator + end)
    assert read_listing_size(path) == 2**40


def test_members_are_bounded_together_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives_module, "UNPACKED", 1000)
    (tmp_path / "a.zip").write_bytes(pack_archive(*((f"{number}.txt", bytes(400)) for number in range(3))))
    with pytest.raises(DownloadError, match=r"^a\.zip: got 1,200 bytes, unpacked, expected at most 1,000"):
        extract_archive(File("a.zip", "", extraction=Extraction("*.txt", "out")), tmp_path / "a.zip", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip"]


def test_more_members_than_are_allowed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives_module, "MEMBERS", 20)
    (tmp_path / "some.zip").write_bytes(pack_archive(*((f"{number}.txt", b"") for number in range(21))))
    with pytest.raises(InputError, match=r"some.zip: got 21 members, expected at most 20 members"):
        open_archive(tmp_path / "some.zip")


def test_an_image_in_an_archive_is_not_read_whole_when_it_is_a_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from regard.tasks.images import ImageFiles

    monkeypatch.setattr(archives_module, "MEMBER", 2**16)
    bomb = pack_archive(("a.png", b"\0" * 2**24))
    lying = change_entry(bomb, 24, struct.pack("<L", 2**15))
    for data, sentence in ((bomb, "16,777,216 bytes of 'a.png', expected at most 65,536"), (lying, "damaged archive")):
        (tmp_path / "images.zip").write_bytes(data)
        tracemalloc.start()
        with pytest.raises(InputError, match=r"images: got a.png in .*images.zip") as caught:
            ImageFiles(tmp_path / "images.zip").read("a.png")
        assert sentence in str(caught.value)
        assert tracemalloc.get_traced_memory()[1] < 2**21
        tracemalloc.stop()


def test_sounds_in_an_archive_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.tasks.speech.spoken_digits import read_digits

    monkeypatch.setattr(archives_module, "MEMBER", 2**16)
    (tmp_path / "recordings.zip").write_bytes(pack_archive(("7_jackson_32.wav", b"\0" * 2**24)))
    with pytest.raises(InputError, match=r"16,777,216 bytes of '7_jackson_32.wav', expected at most 65,536 bytes"):
        read_digits(tmp_path, 8000)


def test_a_text_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    from regard.tasks.data import text_files

    monkeypatch.setattr(text_files, "TEXT", 2**16)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a " * 2**22))
    tracemalloc.start()
    with pytest.raises(InputError, match=r"a.gz: got more than 65,536 bytes of text"):
        text_files.read_decompressed(tmp_path / "a.gz")
    assert tracemalloc.get_traced_memory()[1] < 2**21
    tracemalloc.stop()


def drip(shelf: Any, content: bytes, pause: float = 0.02) -> None:
    """Answer every request with this from now on, a byte at a time, for as long as somebody listens."""

    def answer(self: Any) -> None:
        self.shelf.asked.append("")
        with contextlib.suppress(OSError):
            for place in range(len(content)):
                self.connection.sendall(content[place : place + 1])
                time.sleep(pause)
        self.close_connection = True

    shelf.handler.do_GET = answer


HEAD = b"HTTP/1.1 200 OK\r\nETag: one\r\n"
DRIPS = {
    "head": HEAD + b"X: " + b"a" * 30_000,
    "body": HEAD + b"Content-Length: 300000\r\n\r\n" + b"a" * 300_000,
    "body of unknown length": HEAD + b"\r\n" + b"a" * 300_000,
    "size of a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 60_000,
}


@pytest.mark.parametrize("where", DRIPS)
def test_a_server_that_drips_is_left(shelf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """A byte now and then is no silence, so that no timeout of a socket ends it."""
    monkeypatch.setattr(connections, "SECONDS", 1.0)
    drip(shelf, DRIPS[where])
    sentence = r"^a\.bin: got fewer than 65,536 bytes in 1 seconds, expected all of .*; fix: check the connection"
    with pytest.raises(DownloadError, match=sentence):
        ask(shelf, tmp_path)
    assert len(shelf.asked) == QUICK.tries
    assert not (tmp_path / "a.bin").exists()


class SlowClock:
    """A clock that only a test moves, and that knows how often each side has read it."""

    def __init__(self) -> None:
        self.now, self.reads, self.moved = 0.0, Counter[bool](), threading.Condition()

    def monotonic(self) -> float:
        with self.moved:
            self.reads[threading.current_thread() is threading.main_thread()] += 1
            self.moved.notify_all()
            return self.now

    def wait_for(self, *, reader: bool, reads: int) -> None:
        """Wait until whoever reads the content, or else the watcher of the time, has read the clock so often."""
        with self.moved:
            self.moved.wait_for(lambda: self.reads[reader] >= reads, timeout=60)  # a hang

    def move(self, seconds: float) -> None:
        """Move the clock, and wait until the watcher has noticed."""
        with self.moved:
            self.now += seconds
            seen = self.reads[False]
        self.wait_for(reader=False, reads=seen + 2)


def test_a_slow_server_that_sends_pieces_in_time_is_heard_to_the_end(
    shelf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SlowClock()
    monkeypatch.setattr(connections, "SECONDS", 1.0)
    monkeypatch.setattr(connections, "time", clock)

    def answer(self: Any) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        for number, start in enumerate(range(0, len(CONTENT), 2**16)):
            clock.wait_for(reader=True, reads=2 + 2 * number)  # for the head, the content, and twice a piece
            clock.move(0.8)
            self.wfile.write(CONTENT[start : start + 2**16])

    shelf.handler.do_GET = answer
    assert ask(shelf, tmp_path) == CONTENT
    assert clock.now > 3.0
