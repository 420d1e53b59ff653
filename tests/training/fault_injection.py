"""A file layer and a group of processes in which something fails at the n-th operation, and a script to try them all.

    python fault_injection.py FOLDER kill|full|vanish|change|resume [--every 7] [--offset 3]
    python fault_injection.py FOLDER error|death [--parallel ddp] [--every 7] [--offset 3]

Prints a line of JSON for each fault: where it was, how the run ended, and whether resuming gave the same bits. torch is
imported once; every run is a fork, which takes milliseconds.
"""

import argparse
import builtins
import errno
import io
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as distributed
from toy_training import Toy, find_checkpoints, make_toy_config, read_contents

from regard.errors import RegardError
from regard.training import runtime as runtime_module
from regard.training import train
from regard.training.session import Objective

SHORT = {
    "training__keep": 1,
    "training__stop__steps": 6,
    "training__every__log": 2,
    "training__every__evaluate": 3,
    "training__every__save": 1,
}
PATIENCE = 600.0  # seconds after which a run is taken to hang: none of these works for more than a few
NAMED = ("rename", "replace", "unlink", "rmdir", "mkdir", "link", "truncate", "scandir", "listdir")
WRITING = {"open to write", "write", "write half", "mkdir", "rename", "replace", "link", "fsync"}
Fault = Callable[[str, str], None]


class Layer:
    """Counts what the process does with files below a folder; at operation `at` the fault happens."""

    def __init__(self, root: Path, at: int, fault: Fault) -> None:
        self.root, self.at, self.fault = str(root.resolve()), at, fault
        self.seen: list[tuple[str, str]] = []

    def note(self, operation: str, path: str) -> None:
        if path.startswith(self.root):
            self.seen.append((operation, generalize_path(path[len(self.root) :])))
            if len(self.seen) == self.at:
                self.fault(operation, path)

    def install(self) -> None:
        for name in NAMED:
            setattr(os, name, self.wrap(name, getattr(os, name)))
        real_open, real_os_open = io.open, os.open

        def fsync(handle: Any) -> None:
            self.note("fsync", find_path_of_handle(handle if isinstance(handle, int) else handle.fileno()))

        def open_file(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
            writes = any(letter in mode for letter in "wax+")
            path = find_path_of_handle(file) if isinstance(file, int) else to_absolute(file)
            if not isinstance(file, int):
                self.note("open to write" if writes else "open", path)
            opened = real_open(file, mode, *rest, **more)
            return File(opened, path, self) if writes and path.startswith(self.root) else opened

        def open_handle(file: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            self.note("open to write" if flags & (os.O_CREAT | os.O_RDWR) else "open", to_absolute(file, dir_fd))
            return real_os_open(file, flags, mode, dir_fd=dir_fd)

        os.fsync, os.open, io.open, builtins.open = fsync, open_handle, open_file, open_file  # type: ignore[assignment]

    def wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            folder = more.get("dir_fd", more.get("src_dir_fd"))
            given = arguments[0] if arguments else "."
            path = find_path_of_handle(given) if isinstance(given, int) else to_absolute(given, folder)
            self.note(name, path)
            return real(*arguments, **more)

        return call


class File:
    """A file open for writing, whose writes count: before, and when half is written."""

    def __init__(self, file: Any, path: str, layer: Layer) -> None:
        self.file, self.path, self.layer = file, path, layer

    def write(self, content: Any) -> int:
        self.layer.note("write", self.path)
        half = content[: len(content) // 2]
        written = int(self.file.write(half)) if half else 0
        self.file.flush()
        self.layer.note("write half", self.path)
        return written + int(self.file.write(content[written:]))

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def to_absolute(path: Any, folder: int | None = None) -> str:
    text = os.fsdecode(path)
    return f"{find_path_of_handle(folder)}/{text}" if folder is not None else os.path.abspath(text)


def find_path_of_handle(handle: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        return ""


def generalize_path(path: str) -> str:
    """Return a path in the run folder with N for every step: the same whenever the same thing is done."""
    path = re.sub(r"^/?(\.run\.writing|run)(?=/|$)", lambda found: "RUN" if found[1] == "run" else found[1], path)
    return re.sub(r"\d{9}", "N", path).strip("/") or "."


def train_toy(folder: Path, resume: bool, **settings: object) -> None:
    """Train a whole run, or the rest of one, and end the process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = make_toy_config(folder, **SHORT | settings)
    try:
        for _ in train(Toy(config), config, resume=folder if resume else None):
            pass
    except BaseException as error:
        known = isinstance(error, RegardError)
        text = str(error) if known else f"{type(error).__name__}: {error}"
        (folder.parent / f"said{os.environ.get('RANK', '')}").write_text(text)
        # Here, as the launcher does it: what torch leaves of a process group may wait for ever when it is taken apart.
        os._exit(2 if known else 1)
    os._exit(0)


def fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    work()
    os._exit(0)


def wait(child: int) -> int:
    """Return the exit code of a child, or minus its signal; 99 if it would never end."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 99


def read_output(place: Path, rank: str = "") -> str:
    file = place / f"said{rank}"
    return file.read_text() if file.exists() else ""


# ------------------------------------------------------------------------------------------------ files


def kill(operation: str, path: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fill(operation: str, path: str) -> None:
    if operation in WRITING:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def make_vanish(folder: Path) -> Fault:
    def vanish(operation: str, path: str) -> None:
        if folder.exists():
            folder.rename(folder.with_name("elsewhere"))

    return vanish


def make_change(folder: Path) -> Fault:
    """Return a fault that changes the weights of an old checkpoint, not of the only one, while the run goes on."""

    def change(operation: str, path: str) -> None:
        for old in find_checkpoints(folder)[:-1][:1]:
            weights = old / "weights.safetensors"
            content = weights.read_bytes()
            weights.unlink()  # the best weights may be the same file, by a link
            weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    return change


def attempt(place: Path, at: int, fault: Fault, *, resume: bool) -> tuple[int, list[tuple[str, str]]]:
    """Run once with a fault; return how it ended and which operations there were."""
    trace = place / "trace.json"

    def work() -> None:
        layer = Layer(place, at, fault)
        real_exit = os._exit

        def leave(code: int) -> None:
            layer.root = "\0"
            trace.write_text(json.dumps(layer.seen))
            real_exit(code)

        layer.install()
        os._exit = leave  # type: ignore[assignment]
        train_toy(place / "run", resume)

    code = wait(fork(work))
    seen = [tuple(one) for one in json.loads(trace.read_text())] if trace.exists() else []
    return code, seen  # type: ignore[return-value]


def delete_half(place: Path) -> None:
    """Leave a run as if it was killed while it deleted a checkpoint."""
    _, seen = attempt(place, 0, kill, resume=False)
    last = max(number for number, one in enumerate(seen, 1) if one == ("rmdir", "RUN/checkpoints/.deleting-N"))
    shutil.rmtree(place)
    place.mkdir()
    attempt(place, last, kill, resume=False)


def copy_start(place: Path, start: Path | None) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    if start:
        shutil.copytree(start, place)
    else:
        place.mkdir(parents=True)
    return place


def file_faults(base: Path, kind: str, every: int, offset: int) -> Iterator[dict[str, Any]]:
    """Try a fault at each operation, or at some; after each, compare the resumed run with one that had none."""
    start = None
    if kind == "resume":
        start = base / "half"
        delete_half(copy_start(start, None))
        (start / "trace.json").unlink(missing_ok=True)
    code, seen = attempt(copy_start(base / "whole", start), 0, kill, resume=start is not None)
    expected = read_contents(base / "whole" / "run")
    for at in range(1 + offset, len(seen) + 1, every):
        room = copy_start(base / "room", start)
        run = room / "run"
        faults = {"full": fill, "vanish": make_vanish(run), "change": make_change(run)}
        code, _ = attempt(room, at, faults.get(kind, kill), resume=start is not None)
        told = read_output(room)
        if (room / "elsewhere").exists():
            shutil.rmtree(run, ignore_errors=True)
            (room / "elsewhere").rename(run)
        again = wait(fork(lambda run=run: train_toy(run, (run / "versions.json").exists())))  # type: ignore[misc]
        same = again == 0 and are_equal(read_contents(run), expected, kind)
        where = seen[at - 1]
        yield {"at": at, "operation": where[0], "place": where[1], "code": code, "said": told, "same": same}


def are_equal(found: dict[str, Any], expected: dict[str, Any], kind: str) -> bool:
    """Return whether two runs left the same files; a checkpoint that the fault spoiled does not count."""
    missing = set(expected) - set(found) if kind == "change" else set()
    return found == {name: value for name, value in expected.items() if name not in missing}


# ------------------------------------------------------------------------------------------------ processes

COLLECTIVES = ("all_reduce", "all_gather_object", "broadcast_object_list")


class Calls:
    """Counts what a process does together with others; at call `at` the fault happens."""

    def __init__(self, at: int, fault: Callable[[str], None]) -> None:
        self.at, self.fault = at, fault
        self.seen: list[str] = []

    def install(self) -> None:
        for name in COLLECTIVES:
            self.wrap(distributed, name, name)
        self.wrap(runtime_module, "DistributedDataParallel", "wrap", made=True)
        self.wrap(Objective, "forward", "forward")
        self.wrap(torch.Tensor, "backward", "backward")
        self.wrap(Toy, "measure", "measure")
        self.wrap(torch.optim.AdamW, "step", "optimizer step")

    def wrap(self, owner: Any, name: str, label: str, *, made: bool = False) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any, **more: Any) -> Any:
            self.seen.append(label)
            if len(self.seen) == self.at:
                self.fault(label)
            return real(*arguments, **more)

        if made:  # a class, which others ask for by isinstance
            call = type(name, (real,), {"__init__": lambda one, *rest, **more: self.make(label, real, one, rest, more)})
        setattr(owner, name, call)

    def make(self, label: str, real: Any, one: Any, arguments: Any, more: Any) -> None:
        self.seen.append(label)
        if len(self.seen) == self.at:
            self.fault(label)
        real.__init__(one, *arguments, **more)


def fail(label: str) -> None:
    raise RegardError(f"test: got an error at {label}, expected none; fix: none")


def die(label: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def group(
    place: Path, parallel: str, faulty: int, at: int, fault: Callable[[str], None]
) -> tuple[list[int], list[str]]:
    """Train with two processes and a fault at a call of one; return how they ended, and its calls."""
    store = distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)

    def work(rank: int) -> None:
        os.environ |= {
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }
        calls, real_exit = Calls(at if rank == faulty else 0, fault), os._exit

        def leave(code: int) -> None:
            (place / f"calls{rank}").write_text(json.dumps(calls.seen))
            real_exit(code)

        os._exit = leave  # type: ignore[assignment]
        calls.install()
        resume = (place / "run" / "versions.json").exists()
        train_toy(place / "run", resume, training__parallel=parallel, model__dropout=0.0)

    children = [fork(lambda rank=rank: work(rank)) for rank in range(2)]  # type: ignore[misc]
    codes = [wait(child) for child in children]
    file = place / f"calls{faulty}"
    return codes, json.loads(file.read_text()) if file.exists() else []


def rank_faults(base: Path, kind: str, parallel: str, every: int, offset: int) -> Iterator[dict[str, Any]]:
    """Try a fault at each call of each of two processes, or at some; after each, compare the resumed run."""
    codes, seen = group(copy_start(base / "whole", None), parallel, 0, 0, fail)
    expected = read_contents(base / "whole" / "run") if parallel == "ddp" else {}
    fault = {"error": fail, "death": die}[kind]
    for rank in range(2):
        for at in range(1 + offset, len(seen) + 1, every):
            room = copy_start(base / "room", None)
            codes, _ = group(room, parallel, rank, at, fault)
            texts = [read_output(room, "0"), read_output(room, "1")]
            saved = [int(path.name) for path in find_checkpoints(room / "run")]
            for text in room.glob("said*"):
                text.unlink()
            again, _ = group(room, parallel, 0, 0, fail)
            same = again == [0, 0] and (parallel != "ddp" or read_contents(room / "run") == expected)
            line = {"at": at, "rank": rank, "call": seen[at - 1], "codes": codes, "said": texts, "saved": saved}
            yield line | {"same": same, "again": [*again, read_output(room, "0"), read_output(room, "1")]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", choices=["kill", "full", "vanish", "change", "resume", "error", "death"])
    parser.add_argument("--parallel", choices=["ddp", "fsdp"], default="ddp")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0)
    given = parser.parse_args()
    base = given.folder.resolve()
    torch.set_num_threads(1)
    os.fsync = lambda handle: None  # a kill loses nothing that was written, forced to the disk or not
    config = make_toy_config(copy_start(base / "imports", None) / "run", **SHORT)
    for _ in train(Toy(config), config):
        pass  # whatever is imported on the way is imported once, and not in every fork
    if given.kind in ("error", "death"):
        lines = rank_faults(base, given.kind, given.parallel, given.every, given.offset)
    else:
        lines = file_faults(base, given.kind, given.every, given.offset)
    for line in lines:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
