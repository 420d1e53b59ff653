"""Text in the cache: the same corpus as in memory, made once, made again if the files change, whole or not there."""

import errno
import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest

from regard.errors import InputError
from regard.tasks.data import (
    Corpus,
    load_parallel_files,
    load_parallel_folder,
    load_parallel_table,
    prepared_folder,
    text_corpus,
)
from regard.tasks.data.dataset import compute_fingerprint
from regard.tasks.data.row_files import RowWriter
from regard.tasks.data.text_corpus import StoredCorpus
from regard.training.storage import StorageError, lock_file

LINES = [f"line {number} of some\tZeile {number % 29} von einigen ä" for number in range(211)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and files that need not settle: a test that changes one sets its time."""
    monkeypatch.setattr(text_corpus, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(prepared_folder, "SETTLED", 0.0)
    return tmp_path / "cache" / "text"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """All text counts as large."""
    monkeypatch.setattr(text_corpus, "LARGE", 0)


def write_table(folder: Path, lines: list[str] = LINES, age: int = 0) -> Path:
    path = folder / "t.tsv"
    path.write_text("".join(f"{line}\n" for line in lines))
    os.utime(path, (10**9 + age, 10**9 + age))
    return path


def write_files(folder: Path, splits: tuple[str, ...]) -> Path:
    place = folder / "files"
    place.mkdir()
    for split in splits:
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{line.split(chr(9))[side]} {split[:2]}\n\n" for line in LINES)
            (place / f"{split}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    return place


def load_splits(folder: Path, *splits: str) -> Callable[[], Corpus]:
    place = write_files(folder, splits)
    return lambda: load_parallel_folder(place, "en", "de")


def load_files(folder: Path) -> Callable[[], Corpus]:
    place = write_files(folder, ("train",))
    return lambda: load_parallel_files(place / "train.en", place / "train.de")


FORMS: dict[str, Callable[[Path], Callable[[], Corpus]]] = {
    "table": lambda folder: lambda: load_parallel_table(write_table(folder)),
    "reversed table": lambda folder: lambda: load_parallel_table(write_table(folder), (1, 0)),
    "files": load_files,
    "folder": lambda folder: load_splits(folder, "train"),
    "folder with validation": lambda folder: load_splits(folder, "train", "val"),
    "folder with tests": lambda folder: load_splits(folder, "train", "test_2016", "test_2017"),
    "folder with all": lambda folder: load_splits(folder, "train", "dev", "test"),
}


def describe(corpus: Corpus) -> list[Any]:
    tests = {name: list(pairs) for name, pairs in corpus.tests.items()}
    return [list(corpus.train), list(corpus.validation), tests, corpus.notes, corpus.cut, corpus.fingerprint]


@pytest.mark.parametrize("form", FORMS)
def test_a_stored_corpus_is_the_one_in_memory(
    form: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = FORMS[form](tmp_path)
    wanted = load()
    assert not cache.exists(), "small text leaves nothing in the cache"
    monkeypatch.setattr(text_corpus, "LARGE", 0)
    made = load()
    monkeypatch.setattr(text_corpus, "read_parts", None)
    found = load()
    assert isinstance(found, StoredCorpus)
    assert describe(made) == describe(found) == describe(wanted)
    assert compute_fingerprint(found) == found.fingerprint


@pytest.mark.usefixtures("large")
def test_a_file_that_changed_is_read_again(tmp_path: Path, cache: Path) -> None:
    before = load_parallel_table(write_table(tmp_path))
    other = load_parallel_table(write_table(tmp_path, [line.replace("some", "more") for line in LINES], age=1))
    assert before.fingerprint != other.fingerprint
    assert all("more" in pair.source for pair in other.train)
    assert "some" in before.train[0].source, "a process that has the old text open goes on with it"
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1, "the new text takes the place of the old"


@pytest.mark.usefixtures("large")
def test_a_store_that_has_lost_something_is_made_again(tmp_path: Path, cache: Path) -> None:
    wanted = describe(load_parallel_table(write_table(tmp_path)))
    for damage in (lambda path: os.truncate(path, 5), Path.unlink):
        for name in ("text.bin", "text.npy", "train.npy", "manifest.json"):
            damage(next(cache.glob(f"*/{name}")))
            assert describe(load_parallel_table(tmp_path / "t.tsv")) == wanted


@pytest.mark.usefixtures("large")
def test_a_file_that_changes_while_it_is_read_is_told(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_table(tmp_path)
    append = RowWriter.append

    def change(self: RowWriter, values: numpy.ndarray, lengths: numpy.ndarray) -> None:
        append(self, values, lengths)
        write_table(tmp_path, LINES[:7], age=1)

    monkeypatch.setattr(RowWriter, "append", change)
    with pytest.raises(InputError, match=r"^data: got t.tsv, which changed while it was read, expected a file that st"):
        load_parallel_table(path)
    assert not [path for path in cache.iterdir() if path.is_dir()], "nothing is left"


@pytest.mark.usefixtures("large")
def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(self: RowWriter, values: numpy.ndarray, lengths: numpy.ndarray) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(RowWriter, "append", fill)
        with pytest.raises(StorageError, match=r"^data: got no space left on the disk, expected room in .*; fix: free"):
            load_parallel_table(write_table(tmp_path))
    assert not [path for path in cache.iterdir() if path.is_dir()]
    assert len(load_parallel_table(tmp_path / "t.tsv").train)


def test_one_builds_while_the_others_wait(cache: Path) -> None:
    built = []

    def build(place: Path) -> dict[str, Any]:
        built.append(place)
        (place / "a").write_text("a")
        return {"number": len(built)}

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: prepared_folder.prepare_folder(cache / "a", {"b": (1, 2)}, build), range(8)))
    assert found == 8 * [{"number": 1}]
    assert prepared_folder.prepare_folder(cache / "a", {"b": (1, 3)}, build) == {"number": 2}, "made of something else"


def test_the_work_of_a_killed_process_is_taken_over(cache: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from regard.tasks.data.prepared_folder import prepare_folder
def build(place):
    (place / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
prepare_folder(Path(sys.argv[1]), {}, build)
"""
    killed = subprocess.run([sys.executable, "-c", code, str(cache / "a")], check=False)
    assert killed.returncode < 0
    assert list(cache.glob(".a.writing/half")), "it died in the middle"
    prepared_folder.prepare_folder(cache / "a", {}, lambda place: {"files": [path.name for path in place.iterdir()]})
    assert sorted(path.name for path in cache.iterdir()) == ["a", "a.lock"]
    assert [path.name for path in (cache / "a").iterdir()] == ["manifest.json"], "nothing of the other is in it"


def age(path: Path, days: float) -> None:
    """Let a file or folder be as old as this."""
    then = time.time() - days * 86_400
    os.utime(path, (then, then))


def test_folders_that_cannot_be_used_again_are_removed(cache: Path, large: None, tmp_path: Path) -> None:
    for name in ("gone", "changed", "kept", "young", "built"):
        (tmp_path / name).mkdir()
        write_table(tmp_path / name).rename(tmp_path / name / f"{name}.tsv")
        load_parallel_table(tmp_path / name / f"{name}.tsv")
    folders = {path.name.split("-")[0]: path for path in cache.iterdir() if path.is_dir()}
    for name in ("gone", "young", "built"):
        (tmp_path / name / f"{name}.tsv").unlink()
    os.utime(tmp_path / "changed" / "changed.tsv", (10**9 + 7, 10**9 + 7))
    for name in ("gone", "changed", "kept", "built"):
        age(folders[name] / "manifest.json", 2)
    for name in (".half.writing", ".deleting-other", "by hand"):
        (cache / name).mkdir()
        age(cache / name, 2)
    with lock_file(cache / f"{folders['built'].name}.lock"):
        load_parallel_table(write_table(tmp_path))
    left = {path.name.split("-")[0] for path in cache.iterdir() if path.is_dir()}
    assert left == {"kept", "young", "built", "t", "by hand"}


def test_the_last_folders_of_a_kind_are_kept(cache: Path) -> None:
    folders = [cache / f"ids-{number}" for number in range(prepared_folder.KEPT + 3)]
    for folder in folders:
        prepared_folder.prepare_folder(folder, {}, lambda place: {})
    for number, folder in enumerate(folders):
        age(folder / "manifest.json", 20 - number)
    prepared_folder.prepare_folder(folders[1], {}, lambda place: pytest.fail("it is there"))
    prepared_folder.prepare_folder(cache / "ids-last", {}, lambda place: {})
    left = {path.name for path in cache.iterdir() if path.is_dir()}
    assert left == {"ids-1", "ids-last", *(f"ids-{number}" for number in range(5, prepared_folder.KEPT + 3))}
