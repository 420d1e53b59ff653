"""When the disk is full nothing already saved is lost, and the run can go on."""

import errno
import os
import resource
from pathlib import Path

import pytest
from toy_training import Toy, collect_events, make_toy_config, read_contents

from regard.training import Saved, find_checkpoints, train
from regard.training.checkpoint import verify_checkpoint
from regard.training.storage import StorageError


def test_the_kernel_refuses_to_write_and_the_run_goes_on_later(tmp_path: Path) -> None:
    collect_events(tmp_path / "undisturbed")
    folder, config = tmp_path / "run", make_toy_config(tmp_path / "run")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def train_until_full() -> None:
        for event in train(Toy(config), config):
            if event == Saved(9, folder / "checkpoints" / "000000009"):
                resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))

    try:
        with pytest.raises(StorageError) as caught:
            train_until_full()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value) == (
        f"checkpoint 12: got no space left on the disk, expected room in {folder}; "
        "fix: free some space and go on; what was saved before is whole"
    )
    assert find_checkpoints(folder)[-1].name == "000000009"
    assert not list((folder / "checkpoints").glob(".saving-*"))
    for path in find_checkpoints(folder):
        verify_checkpoint(path)
    collect_events(folder, resume=True)
    assert read_contents(folder) == read_contents(tmp_path / "undisturbed")


def test_whichever_write_fails_the_run_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {
        "training__keep": 1,
        "training__stop__steps": 4,
        "training__every__evaluate": 4,
        "training__every__save": 1,
    }
    collect_events(tmp_path / "undisturbed", **short)
    real, calls = os.fsync, 0

    def fsync(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    for failing in range(1, 1000):
        calls, folder = 0, tmp_path / f"run{failing}"
        try:
            collect_events(folder, **short)
        except StorageError:
            collect_events(folder, resume=(folder / "versions.json").exists(), **short)
            assert read_contents(folder) == read_contents(tmp_path / "undisturbed"), failing
        else:
            break
    assert failing > 30


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"^run: got '.*', expected .*/file/run to be writable; fix: check"):
        collect_events(tmp_path / "file" / "run")
