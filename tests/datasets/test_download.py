"""Whole data sets: archives, records, names, places, and the command."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.datasets import (
    DATASETS_BY_NAME,
    DownloadError,
    Extraction,
    File,
    PublishedDataset,
    RetryPolicy,
    download_dataset,
    find_cached_folder,
    get_data_home,
    list_data_roots,
)
from regard.errors import InputError
from regard.tasks.data.text_files import locate_data

QUICK = RetryPolicy(tries=2, pause=0.0, timeout=60.0)


def zip_files(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


SOUNDS = {"set-1/recordings/b.wav": b"bb", "set-1/recordings/a.wav": b"a", "set-1/README.md": b"read"}
LINES = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in (("a.wav", b"a"), ("b.wav", b"bb")))
MEMBERS = hashlib.sha256(LINES.encode()).hexdigest()


def make_dataset(shelf: Any, **changes: Any) -> PublishedDataset:
    unpacking = Extraction("*/recordings/*.wav", "recordings", **({"count": 2, "sha256": MEMBERS} | changes))
    file = File("set.zip", f"{shelf.address}/set.zip", extraction=unpacking)
    return PublishedDataset("small", "two sounds", "free", "http://127.0.0.1/", (file,))


def test_the_wanted_members_are_unpacked_and_the_archive_is_not_kept(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/set.zip"] = zip_files(SOUNDS)
    said = list(download_dataset(make_dataset(shelf), tmp_path, patience=QUICK))
    assert said[-1] == "set.zip: unpacked, 2 files"
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"recordings/a.wav", "recordings/b.wav", ".regard.json"}
    assert list(download_dataset(make_dataset(shelf), tmp_path, patience=QUICK)) == [
        "set.zip: unpacked already, 2 files"
    ]
    assert len(shelf.asked) == 1
    (tmp_path / "recordings" / "a.wav").unlink()
    list(download_dataset(make_dataset(shelf), tmp_path, patience=QUICK))
    assert (tmp_path / "recordings" / "a.wav").read_bytes() == b"a"


def test_an_archive_packed_anew_is_the_same_set(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/set.zip"] = zip_files(dict(reversed(SOUNDS.items())) | {"set-1/new": b"1"})
    assert list(download_dataset(make_dataset(shelf), tmp_path, patience=QUICK))[-1] == "set.zip: unpacked, 2 files"


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (SOUNDS | {"set-1/recordings/b.wav": b"bX"}, "set.zip: got contents with sha256 .*, expected " + MEMBERS),
        ({"set-1/recordings/a.wav": b"a"}, r"set.zip: got 1 files, expected 2 that fit \*/recordings/\*.wav"),
        ({"other": b"a"}, "set.zip: got 0 files, expected 2 that fit"),
    ],
    ids=["changed", "fewer", "none"],
)
def test_wrong_members_are_not_kept(shelf: Any, tmp_path: Path, files: dict[str, bytes], sentence: str) -> None:
    shelf.files["/set.zip"] = zip_files(files)
    with pytest.raises(DownloadError, match=sentence):
        list(download_dataset(make_dataset(shelf), tmp_path, patience=QUICK))
    assert not (tmp_path / "recordings").exists()


def test_an_archive_writes_nowhere_else(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/set.zip"] = zip_files({"../../recordings/evil.wav": b"x"})
    list(download_dataset(make_dataset(shelf, count=None, sha256=None), tmp_path / "in", patience=QUICK))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert (tmp_path / "in" / "recordings" / "evil.wav").read_bytes() == b"x"


def test_a_damaged_archive_is_one_sentence(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/set.zip"] = zip_files(SOUNDS)[:-30]
    with pytest.raises(
        DownloadError, match=r"set.zip: got a damaged archive .*, expected a whole zip; fix: remove it and"
    ):
        list(download_dataset(make_dataset(shelf), tmp_path, patience=QUICK))


def test_a_file_without_a_sum_must_stay_what_it_was(shelf: Any, tmp_path: Path) -> None:
    plain = PublishedDataset("small", "", "free", "", (File("a.bin", f"{shelf.address}/a.bin"),))
    list(download_dataset(plain, tmp_path, patience=QUICK))
    (tmp_path / "a.bin").unlink()
    shelf.files["/a.bin"] = b"another"
    with pytest.raises(
        DownloadError, match=r"a\.bin: got sha256 .*, expected .*, as last time; fix: remove \.regard\.json"
    ):
        list(download_dataset(plain, tmp_path, patience=QUICK))


def test_every_known_file_has_an_address_of_its_authors() -> None:
    for one in DATASETS_BY_NAME.values():
        assert one.license
        assert one.homepage
        names = [file.name for file in one.files]
        assert len(set(names)) == len(names)
        for file in one.files:
            assert file.address.startswith(("https://", "http://"))
            checks = file.sha256 or (file.extraction and file.extraction.sha256)
            assert checks or one.notes, f"{file.name} has no sum, and nobody says why"
            assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32


def test_data_is_found_where_it_is_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REGARD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert get_data_home() == tmp_path / "cache" / "regard"
    assert list_data_roots()[-1] == get_data_home()
    assert find_cached_folder(DATASETS_BY_NAME["fsdd"]) is None
    with pytest.raises(InputError, match=r"data: got no fsdd, .*; fix: run regard data get fsdd, or give a folder of"):
        locate_data(Path("fsdd"))
    (get_data_home() / "fsdd").mkdir(parents=True)
    assert find_cached_folder(DATASETS_BY_NAME["fsdd"]) is None  # an empty folder is no data
    (get_data_home() / "fsdd" / "recordings").mkdir()
    assert find_cached_folder(DATASETS_BY_NAME["fsdd"]) == locate_data(Path("fsdd")) == get_data_home() / "fsdd"
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "elsewhere"))
    assert get_data_home() == tmp_path / "elsewhere"


def test_this_folder_and_zipped_files_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "some").mkdir(parents=True)
    (tmp_path / "data" / "some" / "text.en.gz").write_bytes(b"")
    assert locate_data(Path(".")) == Path(".")
    assert locate_data(Path("some/text.en")) == Path("data/some/text.en.gz")
    assert locate_data(tmp_path / "data" / "some" / "text.en").name == "text.en.gz"


def test_the_command_shows_the_license_first(
    regard: Callable[..., Any], shelf: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shelf.files["/set.zip"] = zip_files(SOUNDS)
    monkeypatch.setitem(DATASETS_BY_NAME, "small", make_dataset(shelf))
    monkeypatch.setenv("REGARD_DATA", str(tmp_path / "data"))
    done = regard("data", "get", "small")
    assert (done.code, done.errors) == (0, "")
    lines = done.output.splitlines()
    assert lines[:3] == ["small: two sounds", "license: free", "see http://127.0.0.1/"]
    assert lines[-1] == f"small is in {tmp_path / 'data' / 'small'}"
    assert (tmp_path / "data" / "small" / "recordings" / "b.wav").read_bytes() == b"bb"


def test_a_mirror_must_have_the_same_files(regard: Callable[..., Any], shelf: Any) -> None:
    shelf.files["/train-images-idx3-ubyte.gz"] = b"not these"
    done = regard("data", "get", "mnist", "--folder", "there", "--mirror", f"{shelf.address}/")
    assert done.code == 2
    assert "usually stated as CC BY-SA 3.0" in done.output
    assert done.errors.startswith("regard: train-images-idx3-ubyte.gz: got 9 bytes, expected 9912422 bytes from http")
    assert done.errors.count("\n") == 1


def test_the_list_says_license_size_and_place(regard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    output = regard("data").output
    for one in DATASETS_BY_NAME.values():
        assert one.name in output
        assert one.license in output
    assert "35.1 MB" in output
    assert "looked for in: NAME, data/NAME, " in output


def test_an_unknown_name_is_one_sentence(regard: Callable[..., Any]) -> None:
    done = regard("data", "get", "mnits")
    assert done.code == 2
    assert done.errors == (
        f"regard: data set: got mnits, expected one of {', '.join(DATASETS_BY_NAME)}; "
        "fix: write regard data get mnist\n"
    )


def test_a_download_that_never_came_is_not_taken_for_data(
    regard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_DATA", "elsewhere")
    Path("elsewhere/mnist").mkdir(parents=True)
    Path("elsewhere/mnist/.train-images-idx3-ubyte.gz.part").touch()
    done = regard("train", "digits", "mnist", "--folder", "run")
    fix = "run regard data get mnist, or give a folder of your own"
    sentence = f"data: got no mnist, expected a file or folder that exists; fix: {fix}"
    assert done == (2, "", f"regard: {sentence}\n")
    Path("elsewhere/mnist/train-images-idx3-ubyte.gz").touch()
    assert "data: got " in (other := regard("train", "digits", "mnist", "--folder", "run")).errors
    assert sentence not in other.errors
