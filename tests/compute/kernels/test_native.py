"""Building the library: whatever goes wrong on the way, the answer is a right library or none."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.compute.kernels import native
from regard.compute.kernels.native import cache, compiler, loader

SOURCE = 'extern "C" int regard_answer(long n) { return int(n) + %d; }\n'

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is compiled there")


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process that has asked for nothing yet, an empty cache, and one small source that compiles at once."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "answer.cpp").write_text(SOURCE % 41)
    monkeypatch.setattr(loader, "SOURCES", folder)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("REGARD_COMPILER", raising=False)
    monkeypatch.setattr(loader, "_holder", loader._LoaderState())
    return folder


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forget what this process has loaded, as a new process would."""
    return lambda: monkeypatch.setattr(loader, "_holder", loader._LoaderState())


def write_script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{textwrap.dedent(body)}\n")
    path.chmod(0o755)
    return path


def find_compiler() -> str:
    try:
        return " ".join(compiler.find_compiler())
    except compiler.BuildError as error:
        pytest.skip(str(error))


def answer(library: native.Library | None) -> int:
    assert library is not None
    return library.function("regard_answer", native.SIZE)(1)


def list_entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("native-*"))


def test_a_library_is_built_once_and_then_found(
    sources: Path, again: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    logged = write_script(tmp_path / "c++", f'echo "$@" >> {log}\nexec {find_compiler()} "$@"')
    monkeypatch.setenv("REGARD_COMPILER", str(logged))
    assert answer(native.load_library()) == 42
    calls = log.read_text().count("-shared")
    again()
    assert native.get_loaded() is None
    assert answer(native.load_library(build=False)) == 42
    assert native.get_loaded() is native.load_library()
    assert log.read_text().count("-shared") == calls == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [list_entries(tmp_path)[0].name]


def test_looking_does_not_build(sources: Path, tmp_path: Path) -> None:
    find_compiler()
    assert native.load_library(build=False) is None
    assert list_entries(tmp_path) == []
    assert answer(native.load_library()) == 42


def test_other_sources_are_another_library(sources: Path, again: Callable[[], None], tmp_path: Path) -> None:
    find_compiler()
    assert answer(native.load_library()) == 42
    again()
    (sources / "answer.cpp").write_text(SOURCE % 42)
    assert answer(native.load_library()) == 43
    assert len(list_entries(tmp_path)) == 2


def test_every_fact_is_in_the_name(tmp_path: Path) -> None:
    file = tmp_path / "a.cpp"
    file.write_text("1")
    names = {
        cache.compute_key([file]),
        cache.compute_key([file], "gcc 12"),
        cache.compute_key([file], "gcc 13"),
        cache.compute_key([]),
    }
    file.write_text("2")
    assert len(names | {cache.compute_key([file])}) == 5
    assert cache.describe_processor() == cache.describe_processor() != ""


@pytest.mark.parametrize("word", ["", "none", "None"])
def test_no_compiler_wanted_is_no_warning(sources: Path, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_COMPILER", word)
    assert native.load_library() is None
    assert native.get_failure() == "REGARD_COMPILER says so"


def gives_up(match: str) -> None:
    """None with one warning, then None in silence."""
    with pytest.warns(RuntimeWarning, match=match) as caught:
        assert native.load_library() is None
    assert len(caught) == 1
    assert str(caught[0].message).count(".") >= 1
    assert "\n" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert native.load_library() is None
    assert native.get_failure()


def test_a_missing_compiler_is_said_once(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_COMPILER", "no-such-compiler")
    assert native.load_library(build=False) is None
    gives_up("no-such-compiler was not found")


def test_no_compiler_at_all_is_said_once(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    gives_up("no C.. compiler was found")


def test_a_failing_compiler_is_said_once(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = 'test "$1" = --version && exit 0\necho "a.cpp:1: error: out of luck"\nexit 1'
    monkeypatch.setenv("REGARD_COMPILER", str(write_script(tmp_path / "failing", body)))
    gives_up("ended with 1 .a.cpp:1: error: out of luck")
    assert list_entries(tmp_path) == []


def test_a_source_with_an_error_is_said_once(sources: Path, tmp_path: Path) -> None:
    find_compiler()
    (sources / "wrong.cpp").write_text("int regard_wrong( { return 1; }")
    gives_up("the compiler ended with 1 .*wrong.cpp")
    assert list_entries(tmp_path) == []


def test_a_killed_compiler_leaves_nothing_behind(
    sources: Path, again: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies with half of its output written."""
    body = """
        test "$1" = --version && exit 0
        while test $# -gt 0; do test "$1" = -o && echo half > "$2"; shift; done
        kill -9 $$
    """
    monkeypatch.setenv("REGARD_COMPILER", str(write_script(tmp_path / "killed", body)))
    gives_up("ended with -9")
    assert list_entries(tmp_path) == []
    again()
    monkeypatch.delenv("REGARD_COMPILER")
    find_compiler()
    assert answer(native.load_library()) == 42


def test_a_hung_compiler_is_ended(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it compiles: flags that are plainer would hang as well."""
    body = f'test "$1" = --version && exit 0\necho "$@" >> {tmp_path / "log"}; exec sleep 60'
    monkeypatch.setenv("REGARD_COMPILER", str(write_script(tmp_path / "hung", body)))
    monkeypatch.setattr(compiler, "MOMENT", 0.5)
    gives_up("did not end within 0.[3-5].* seconds")
    assert len((tmp_path / "log").read_text().splitlines()) <= 1


def test_a_compiler_that_hangs_at_once_is_waited_for_once(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f"echo called >> {tmp_path / 'log'}; exec sleep 60"
    monkeypatch.setenv("REGARD_COMPILER", str(write_script(tmp_path / "hung", body)))
    monkeypatch.setattr(compiler, "MOMENT", 0.3)
    with pytest.warns(RuntimeWarning, match="did not end within"):
        assert native.load_library(build=False) is None
    (tmp_path / "log").unlink(missing_ok=True)  # one that had not even begun is slow, not wrong
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert native.load_library() is None
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("command", ['"', "'", "/no/such/compiler", "", "no-such -std=c++17"])
def test_a_command_of_no_use_in_cxx_gives_way_to_the_usual_ones(
    sources: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_compiler()
    monkeypatch.setenv("CXX", command)
    assert answer(native.load_library()) == 42


def test_a_command_of_no_use_that_was_asked_for_is_said(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_COMPILER", '"')
    gives_up('" was not found')


def test_a_compiler_that_only_fails_is_said_once(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "false")
    gives_up("ended with 1")


def test_more_flags_are_another_library(
    sources: Path, again: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_compiler()
    (sources / "answer.cpp").write_text(SOURCE.replace("%d", "MORE"))
    for more in (1, 2):
        again()
        monkeypatch.setenv("REGARD_CXXFLAGS", f"-DMORE={more}")
        assert answer(native.load_library()) == 1 + more
    assert len(list_entries(tmp_path)) == 2


def test_a_compiler_that_cannot_start_is_said_once(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = write_script(tmp_path / "broken", "")
    broken.write_bytes(b"\x7fELF")
    monkeypatch.setenv("REGARD_COMPILER", str(broken))
    gives_up("could not be started")


def test_flags_that_fail_give_way_to_plainer_ones(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = f"""
        case "$*" in *openmp*|*gomp*|*march*) echo "error: unknown option"; exit 1;; esac
        exec {find_compiler()} "$@"
    """
    monkeypatch.setenv("REGARD_COMPILER", str(write_script(tmp_path / "plain", body)))
    assert answer(native.load_library()) == 42


def test_a_compiler_that_makes_nonsense_is_no_compiler(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = 'while test $# -gt 0; do test "$1" = -o && echo nonsense > "$2"; shift; done\nexit 0'
    monkeypatch.setenv("REGARD_COMPILER", str(write_script(tmp_path / "nonsense", body)))
    gives_up("runs without its compiled kernels")
    assert list_entries(tmp_path) == []


def truncate(entry: Path) -> None:
    whole = (entry / cache.LIBRARY).read_bytes()
    (entry / cache.LIBRARY).write_bytes(whole[: len(whole) // 2])


def flip(entry: Path) -> None:
    whole = bytearray((entry / cache.LIBRARY).read_bytes())
    whole[len(whole) // 2] ^= 1
    (entry / cache.LIBRARY).write_bytes(whole)


def forge(entry: Path) -> None:
    """Whole by its sum, and yet no library."""
    (entry / cache.LIBRARY).write_bytes(b"nonsense")
    (entry / cache.SUM).write_text(hashlib.sha256(b"nonsense").hexdigest())


def scribble(entry: Path) -> None:
    (entry / cache.SUM).write_bytes(b"\xff\xfe\xff")


def open_to_all(entry: Path) -> None:
    """Let anybody write the library: nobody can tell who did."""
    (entry / cache.LIBRARY).chmod(0o666)


def open_to_the_group(entry: Path) -> None:
    entry.chmod(0o770)


def drop_sum(entry: Path) -> None:
    (entry / cache.SUM).unlink()


def drop_library(entry: Path) -> None:
    (entry / cache.LIBRARY).unlink()


@pytest.mark.parametrize(
    "damage", [truncate, flip, forge, scribble, open_to_all, open_to_the_group, drop_sum, drop_library]
)
def test_a_damaged_library_is_built_anew(
    sources: Path,
    again: Callable[[], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], None],
) -> None:
    """Under a path that is new to the process, for an open library is not read again."""
    find_compiler()
    assert answer(native.load_library()) == 42
    shutil.copytree(tmp_path / "cache", tmp_path / "copy" / "cache")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "copy" / "cache"))
    (entry,) = list_entries(tmp_path / "copy")
    damage(entry)
    again()
    assert answer(native.load_library()) == 42
    assert list_entries(tmp_path / "copy") == [entry]
    assert cache.find_entry(entry) == entry / cache.LIBRARY


def test_an_unwritable_cache_is_no_obstacle(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_compiler()
    (tmp_path / "file").write_text("in the way of a folder, for root as well")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file" / "cache"))
    library = native.load_library()
    assert answer(library) == 42
    assert library is not None
    assert tmp_path / "file" not in library.path.parents


def test_a_cache_that_others_write_to_is_neither_loaded_nor_filled(
    sources: Path, again: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_compiler()
    assert answer(native.load_library()) == 42
    (tmp_path / "cache").chmod(0o777)
    again()
    with pytest.warns(RuntimeWarning, match="others may write there"):
        library = native.load_library()
    assert answer(library) == 42
    assert library is not None
    assert tmp_path / "cache" not in library.path.parents
    assert len(list_entries(tmp_path)) == 1


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away")
def test_a_library_of_somebody_else_is_not_loaded(sources: Path, tmp_path: Path) -> None:
    find_compiler()
    assert answer(native.load_library()) == 42
    (entry,) = list_entries(tmp_path)
    for path in (entry / cache.LIBRARY, entry, tmp_path / "cache"):
        assert cache.find_entry(entry) is not None
        os.chown(path, 12345, -1)
        assert cache.find_entry(entry) is None
        os.chown(path, 0, -1)


@pytest.mark.parametrize("name", [cache.LIBRARY, cache.SUM])
def test_a_pipe_in_the_cache_is_not_waited_for(tmp_path: Path, name: str) -> None:
    for other in (cache.LIBRARY, cache.SUM):
        (tmp_path / other).write_bytes(b"")
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert cache.find_entry(tmp_path) is None


def test_nobody_needs_a_home(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_compiler()

    def raise_without_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("REGARD_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "home", raise_without_home)
    assert answer(native.load_library()) == 42
    assert cache.find_folder().parent == tmp_path
    monkeypatch.setattr(Path, "home", lambda: Path(""))
    assert cache.find_folder().parent == tmp_path


def test_two_processes_at_once_get_one_library(sources: Path, tmp_path: Path) -> None:
    """A slow compiler makes sure that both are compiling before either is done."""
    slow = write_script(tmp_path / "slow", f'test "$1" = --version || sleep 1\nexec {find_compiler()} "$@"')
    code = f"""
        from pathlib import Path
        from regard.compute.kernels import additive, native
        from regard.compute.kernels.native import loader
        assert not loader._holder.searched_cache, "importing must not look for a library"
        loader.SOURCES = Path({str(sources)!r})
        library = native.load_library()
        print(library.function("regard_answer", native.SIZE)(1), library.path)
    """
    environment = os.environ | {"REGARD_COMPILER": str(slow)}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", textwrap.dedent(code)]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=800)[0].split() for process in both]
    (entry,) = list_entries(tmp_path)
    assert said == [["42", str(entry / cache.LIBRARY)]] * 2
    assert cache.find_entry(entry) is not None
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [entry.name]


def test_what_a_killed_process_left_is_swept(sources: Path, tmp_path: Path) -> None:
    find_compiler()
    old, new = tmp_path / "cache" / "building-old", tmp_path / "cache" / "building-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    assert answer(native.load_library()) == 42
    assert not old.exists()
    assert new.exists()


def age(entry: Path, days: float) -> Path:
    """Make an entry as a process left it that many days ago."""
    entry.mkdir(parents=True)
    for name in (cache.LIBRARY, cache.SUM):
        (entry / name).write_text("")
        (entry / name).chmod(0o644)
    then = time.time() - days * cache.DAY
    os.utime(entry / cache.SUM, (then, then))
    return entry


def test_entries_of_other_sources_are_removed_unless_used_or_strange(sources: Path, tmp_path: Path) -> None:
    find_compiler()
    folder, key = tmp_path / "cache", "0123456789abcdef" * 2
    old = [age(folder / f"native-{name}{key}", 30) for name in ("", "a" * 12 + "-")]
    yesterday = age(folder / f"native-{'b' * 12}-{key}", 0.5)
    used = age(folder / f"native-{'c' * 12}-{key}", 30)
    strange = age(folder / f"native-{'d' * 12}-{key}", 30)
    (strange / "notes.txt").write_text("mine")
    others = [age(folder / name, 30) for name in ("native-mine", "features")]
    holder = "import sys; from pathlib import Path; from regard.compute.kernels.native import cache;"
    holder += f"cache.mark_used(Path({str(used)!r})); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.utime(used / cache.SUM, (0, 0))  # in use for longer than a day
        assert answer(native.load_library()) == 42
        process.communicate()
    assert [entry for entry in old if entry.exists()] == []
    assert [entry for entry in (yesterday, used, strange, *others) if not entry.exists()] == []
    assert list(folder.glob("damaged-*")) == []


def test_the_last_few_entries_of_the_same_sources_are_kept(tmp_path: Path) -> None:
    ages = [age(tmp_path / cache.name_entry([], str(number)), number) for number in range(cache.KEPT + 3)]
    cache.remove_old_entries(ages[-1])
    assert [entry.exists() for entry in ages] == [*[True] * cache.KEPT, False, False, True]


def test_compiling_is_said_once_and_loading_is_not(
    sources: Path, again: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    find_compiler()
    native.load_library()
    assert [record.getMessage()[:30] for record in caplog.records] == ["regard compiles its kernels, o"]
    again()
    assert answer(native.load_library()) == 42
    assert len(caplog.records) == 1


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux to see what is loaded")
def test_our_loops_and_torch_share_one_pool_of_threads() -> None:
    if native.load_library() is None or not compiler.find_torch_gomp():
        pytest.skip("no compiled kernels, or a torch without GNU's OpenMP")
    # In a process of its own: scikit-learn, say, brings another libgomp along.
    code = (
        "from regard.compute.kernels import native; native.load_library(); import torch; torch.ones(10**6).sum();"
        "print(len({line.split()[-1] for line in open('/proc/self/maps') if 'libgomp' in line}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_every_platform_has_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.find_folder() == Path("/somewhere/regard")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.find_folder() == Path.home() / "Library" / "Caches" / "regard"


def test_windows_is_left_alone_unless_asked(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    gives_up("on Windows no compiler is looked for")
