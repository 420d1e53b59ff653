"""Downloads from a server that cuts, lies, forgets and refuses: whole and right, or one sentence and nothing lost."""

import hashlib
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from regard.datasets.files import File
from regard.datasets.transfer import DownloadError, RetryPolicy, download_file

QUICK = RetryPolicy(tries=3, pause=0.0, timeout=60.0)
CONTENT = bytes(range(256)) * 1200
SUM = hashlib.sha256(CONTENT).hexdigest()


def file_of(shelf: Any, **changes: Any) -> File:
    return File(
        **({"name": "a.bin", "address": f"{shelf.address}/a.bin", "size": len(CONTENT), "sha256": SUM} | changes)
    )


def get(shelf: Any, folder: Path, **changes: Any) -> str:
    return download_file(file_of(shelf, **changes), folder / "a.bin", patience=QUICK)


def list_sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def test_a_whole_file_is_fetched_once(shelf: Any, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    total = download_file(file_of(shelf), tmp_path / "new" / "a.bin", lambda *pair: seen.append(pair), QUICK)
    assert total == SUM
    assert list_sizes(tmp_path / "new") == {"a.bin": len(CONTENT)}
    assert (tmp_path / "new" / "a.bin").read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert len(seen) > 2
    assert download_file(file_of(shelf), tmp_path / "new" / "a.bin", patience=QUICK) == SUM
    assert shelf.asked == [""]


def test_a_cut_download_goes_on_where_it_stopped(shelf: Any, tmp_path: Path) -> None:
    shelf.cut = [70_000, 1, 100_000]
    get(shelf, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert shelf.asked == ["", "bytes=70000-", "bytes=70001-", "bytes=170001-"]
    assert shelf.sent == len(CONTENT)


def test_a_later_call_goes_on_too(shelf: Any, tmp_path: Path) -> None:
    shelf.cut, shelf.codes = [90_000], []
    shelf.hold = lambda: shelf.codes.append(503) if len(shelf.asked) in (2, 3, 4) else None
    with pytest.raises(
        DownloadError, match=r"a\.bin: got Service Unavailable, expected all of .*; 90000 bytes are kept"
    ):
        get(shelf, tmp_path)
    assert not (tmp_path / "a.bin").exists()
    get(shelf, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert shelf.asked[-1] == "bytes=90000-"
    assert shelf.sent == len(CONTENT)


def test_without_ranges_it_begins_again(shelf: Any, tmp_path: Path) -> None:
    shelf.ranges, shelf.cut = False, [70_000]
    get(shelf, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert shelf.sent == 70_000 + len(CONTENT)


def test_a_server_that_never_gets_further_is_given_up(shelf: Any, tmp_path: Path) -> None:
    shelf.ranges, shelf.cut = False, [70_000] * 99
    with pytest.raises(DownloadError, match=r"fix: check the connection and repeat; 70000 bytes are kept"):
        get(shelf, tmp_path)
    assert len(shelf.asked) == 1 + QUICK.tries


@pytest.mark.parametrize("other", [CONTENT[::-1], CONTENT[:1000]], ids=["other", "shorter"])
def test_a_file_that_changed_meanwhile_is_not_mixed(shelf: Any, tmp_path: Path, other: bytes) -> None:
    shelf.cut = [70_000]

    def change() -> None:
        if len(shelf.asked) == 2:
            shelf.files["/a.bin"], shelf.tag = other, '"two"'

    shelf.hold = change
    get(shelf, tmp_path, size=None, sha256=None)
    assert (tmp_path / "a.bin").read_bytes() == other


def test_a_part_longer_than_the_file_begins_again(shelf: Any, tmp_path: Path) -> None:
    (tmp_path / ".a.bin.part").write_bytes(b"x" * (len(CONTENT) + 5))
    get(shelf, tmp_path, size=None)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_wrong_sum_keeps_nothing(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/a.bin"] = b"y" + CONTENT[1:]
    found = hashlib.sha256(shelf.files["/a.bin"]).hexdigest()
    with pytest.raises(DownloadError) as error:
        get(shelf, tmp_path)
    assert str(error.value) == (
        f"a.bin: got {len(CONTENT)} bytes with sha256 {found}, expected {len(CONTENT)} bytes with {SUM}; "
        "fix: try again, or another --mirror; nothing was kept"
    )
    assert "a.bin" not in list_sizes(tmp_path)
    assert ".a.bin.part" not in list_sizes(tmp_path)


def test_a_wrong_file_that_is_there_is_left_alone(shelf: Any, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"mine")
    with pytest.raises(DownloadError, match="fix: move it away and repeat"):
        get(shelf, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == b"mine"
    assert shelf.asked == []


def test_a_wrong_size_is_refused_before_it_is_loaded(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/a.bin"] = CONTENT * 40
    with pytest.raises(
        DownloadError, match=rf"a\.bin: got {40 * len(CONTENT)} bytes, expected {len(CONTENT)} bytes from"
    ):
        get(shelf, tmp_path)
    assert list_sizes(tmp_path).get(".a.bin.part") == 0


def test_more_than_was_said_stops(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/a.bin"], shelf.announce = CONTENT * 2, False
    with pytest.raises(DownloadError, match=rf"a\.bin: got more than {len(CONTENT)} bytes, expected"):
        get(shelf, tmp_path)


def test_no_length_is_no_harm(shelf: Any, tmp_path: Path) -> None:
    shelf.announce = False
    assert get(shelf, tmp_path) == SUM


@pytest.mark.parametrize("code", [403, 404])
def test_a_refusal_is_one_sentence_at_once(shelf: Any, tmp_path: Path, code: int) -> None:
    shelf.codes = [code]
    with pytest.raises(
        DownloadError, match=rf"a\.bin: got {code} .*, expected an answer of .*; fix: look for it there"
    ):
        get(shelf, tmp_path)
    assert len(shelf.asked) == 1


def test_a_busy_server_is_asked_again(shelf: Any, tmp_path: Path) -> None:
    shelf.codes = [503, 429]
    assert get(shelf, tmp_path) == SUM


def test_a_server_that_hangs_is_asked_again(shelf: Any, tmp_path: Path) -> None:
    free = threading.Event()

    def hang() -> None:
        if len(shelf.asked) == 1:
            free.wait(600)

    shelf.hold = hang
    impatient = RetryPolicy(tries=100, pause=0.0, timeout=0.5)
    assert download_file(file_of(shelf), tmp_path / "a.bin", patience=impatient) == SUM
    free.set()


def test_nobody_there_is_one_sentence(tmp_path: Path) -> None:
    nowhere = File("a.bin", "http://127.0.0.1:9/a.bin", 3, SUM)
    with pytest.raises(
        DownloadError, match=r"a\.bin: got .*refused.*, expected all of http://127\.0\.0\.1:9/a\.bin; fix"
    ):
        download_file(nowhere, tmp_path / "a.bin", patience=QUICK)


def test_a_full_disk_keeps_what_came_and_goes_on(shelf: Any, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(DownloadError, match=r"disk: got no space left, expected room in .*; fix: free some space"):
            get(shelf, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert 0 < list_sizes(tmp_path)[".a.bin.part"] <= 100_000
    get(shelf, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert shelf.asked[-1].startswith("bytes=")


def test_a_disk_with_too_little_room_is_not_filled(shelf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=len(CONTENT) - 1))
    with pytest.raises(DownloadError, match="disk: got no space left"):
        get(shelf, tmp_path)
    assert list_sizes(tmp_path)[".a.bin.part"] == 0


def test_two_at_once_do_not_mix(shelf: Any, tmp_path: Path) -> None:
    free, came = threading.Event(), threading.Event()

    def hold() -> None:
        came.set()
        free.wait(600)

    shelf.hold = hold
    patient = RetryPolicy(timeout=600.0)
    first = threading.Thread(target=lambda: download_file(file_of(shelf), tmp_path / "a.bin", patience=patient))
    first.start()
    came.wait(600)
    with pytest.raises(DownloadError, match=r"a download that is under way, expected none; fix: wait for the other"):
        get(shelf, tmp_path)
    free.set()
    first.join()
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written_is_one_sentence(shelf: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DownloadError, match=r"a\.bin: got '(Not a directory|File exists)', expected .* to be writable"):
        download_file(file_of(shelf), tmp_path / "file" / "a.bin", patience=QUICK)


def test_the_package_is_imported_where_there_are_no_file_locks() -> None:
    code = "import sys; sys.modules['fcntl'] = None; import regard.datasets.transfer"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
