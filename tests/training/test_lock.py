"""One process at a time changes a run folder, and the second is told who the first is."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from platform import node

import pytest
from toy_training import Toy, collect_events, make_toy_config, read_contents

from regard.errors import InputError
from regard.training import Noted, average_checkpoints, lock, train
from regard.training.lock import Holder, Lock, check_free, describe_process, hold_lock, is_abandoned

HOLD = """
import sys, time
from pathlib import Path
from regard.training.lock import hold_lock
with hold_lock(Path(sys.argv[1])):
    print("here", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "finished"
    collect_events(folder, training__stop__steps=6)
    return folder


@pytest.fixture
def run(tmp_path: Path, finished_run: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.fixture
def first(run: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that works on the run."""
    command = [sys.executable, "-c", HOLD, str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        yield process
        process.kill()


def resume(folder: Path) -> None:
    collect_events(folder, resume=True, training__stop__steps=9)


def start(folder: Path) -> None:
    collect_events(folder, training__stop__steps=9)


def mean(folder: Path) -> None:
    average_checkpoints(folder, 1, "last", Toy.goal, folder / "averaged.safetensors")


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_second_is_told_who_the_first_is_and_touches_nothing(run: Path, first: subprocess.Popen[str]) -> None:
    before = read_files(run)
    for second in (resume, start, mean, check_free):
        with pytest.raises(InputError) as caught:
            second(run)
        text = str(caught.value)
        assert text.startswith(f"run: got {run}, which is in use by process {first.pid} on {node()} since 20")
        assert text.endswith(
            ", expected a run that no other process works on; fix: wait until that one has ended, or stop it"
        )
    assert read_files(run) == before


def test_the_lock_of_a_dead_process_is_taken_over(run: Path, first: subprocess.Popen[str]) -> None:
    first.kill()
    first.wait()
    assert (run / ".lock").exists()
    resume(run)
    mean(run)
    assert not (run / ".lock").exists()


def test_who_takes_over_from_another_machine_says_so(run: Path) -> None:
    elsewhere = Holder("elsewhere", 7, "2020-02-02T02:02:02+00:00", "")
    (run / ".lock").write_text(json.dumps(elsewhere._asdict()))
    notes = [
        event.text for event in collect_events(run, resume=True, training__stop__steps=6) if isinstance(event, Noted)
    ]
    assert notes == [f"taken over from {elsewhere}, which no longer has the lock"]


def test_without_locks_of_the_system_what_the_file_says_decides(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: object, operation: int) -> None:
        raise OSError(38, "no locks here")

    import fcntl

    monkeypatch.setattr(fcntl, "flock", refuse)
    with hold_lock(run), pytest.raises(InputError, match=rf"in use by process {os.getpid()} on "):
        resume(run)
    resume(run)
    (run / ".lock").write_text(json.dumps(Holder("elsewhere", 7, "2020", "")._asdict()))
    with pytest.raises(InputError, match=rf"; if it is gone, remove {re.escape(str(run))}/.lock$"):
        resume(run)


def test_who_is_certainly_gone() -> None:
    own = describe_process()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert is_abandoned(None)
    assert not is_abandoned(own)
    assert not is_abandoned(own._replace(host="elsewhere"))
    assert is_abandoned(own._replace(boot="the one before"))
    assert is_abandoned(own._replace(process=process.pid))


def test_reading_is_not_locked_out(run: Path, first: subprocess.Popen[str]) -> None:
    from regard.tasks.prediction import find_weights
    from regard.training import read_safetensors
    from regard.training.run_folder import read_versions

    assert read_versions(run)["format"] == 1
    assert read_safetensors(find_weights(run, None))


def test_a_run_that_is_being_made_is_locked_before_it_has_its_name(tmp_path: Path) -> None:
    class SlowTask(Toy):
        def save(self, folder: Path) -> None:
            with pytest.raises(InputError, match="in use by process"):
                start(tmp_path / "run")
            super().save(folder)

    config = make_toy_config(tmp_path / "run", training__stop__steps=3)
    list(train(SlowTask(config), config))
    collect_events(tmp_path / "same", training__stop__steps=3)
    assert read_contents(tmp_path / "run") == read_contents(tmp_path / "same")


def test_the_lock_is_held_from_the_first_event_to_the_last_and_then_gone(tmp_path: Path) -> None:
    config = make_toy_config(tmp_path / "run", training__stop__steps=6)
    events = train(Toy(config), config)
    for _ in events:
        with pytest.raises(InputError, match="in use"):
            check_free(tmp_path / "run")
    check_free(tmp_path / "run")
    assert not (tmp_path / "run" / ".lock").exists()


@pytest.mark.parametrize("content", [b"", b"[" * 5000, b"{}", b"\xff", b'{"host": 3}'])
def test_a_lock_that_says_nothing_still_locks(
    run: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, quick: Callable[[], None]
) -> None:
    with hold_lock(run):
        (run / ".lock").write_bytes(content)
        with pytest.raises(InputError, match="in use by another process, expected"):
            resume(run)
    resume(run)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    monkeypatch.setattr(lock, "A_MOMENT", 0.0)
    return lambda: None


def test_a_lock_removed_under_the_feet_of_its_taker_is_taken_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking, the one before may end and remove the file: two would hold two files of one name."""
    real, opened = lock.open_regular, 0

    def open_and_lose(path: Path, flags: int) -> object:
        nonlocal opened
        opened += 1
        file = real(path, flags)
        if opened == 1:
            path.unlink()
        return file

    monkeypatch.setattr(lock, "open_regular", open_and_lose)
    own = Lock()
    own.acquire(run)
    monkeypatch.undo()
    with pytest.raises(InputError, match="in use"):
        check_free(run)
    own.close()
    assert opened == 2
