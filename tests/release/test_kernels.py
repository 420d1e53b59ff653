"""The library of a wheel: every instruction set is in it, and the processor's is chosen."""

import importlib.util
import platform
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from regard.compute.kernels import native
from regard.compute.kernels.native import compiler, loader, packaged

ROOT = Path(__file__).parents[2]
SOURCE = """
#include <cmath>
namespace regard {
#if defined(__AVX512F__)
inline int width() { return 64; }
#elif defined(__AVX2__)
inline int width() { return 32; }
#else
inline int width() { return 16; }
#endif
}
#define MAKE(T) extern "C" int regard_width_##T(long n) { return regard::width() + int(std::exp(T(n)) > T(n)); }
MAKE(float)
MAKE(double)
"""

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() != "x86_64", reason="wheels with kernels are made for these"
)


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernels_hook", ROOT / "release" / "kernels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library(hook: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small source, compiled as the kernels of a wheel are."""
    try:
        compiler.find_compiler()
    except compiler.BuildError as error:
        pytest.skip(str(error))
    sources, folder = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("made")
    (sources / "width.cpp").write_text(SOURCE)
    return Path(hook.compile_library(sources, folder))


@pytest.fixture
def installed_folder(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process that has asked for nothing yet, beside such a library, with no compiler on its path."""
    folder = tmp_path / "native"
    folder.mkdir()
    (folder / packaged.LIBRARY).write_bytes(library.read_bytes())
    monkeypatch.setattr(loader, "SOURCES", folder)
    monkeypatch.setattr(loader, "_holder", loader._LoaderState())
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "")
    for name in ("CXX", "REGARD_COMPILER", "REGARD_CXXFLAGS", packaged.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    return folder


def get_width(found: native.Library | None, dtype: str = "float") -> int:
    assert found is not None
    return found.function(f"regard_width_{dtype}", native.SIZE)(1) - 1


def get_processor_widths() -> list[int]:
    """Return what this processor can run, read where the kernel of Linux says it."""
    flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[1].splitlines()[0].split()
    wide = {"avx2", "fma"} <= set(flags)
    widest = wide and {f"avx512{part}" for part in ("f", "bw", "cd", "dq", "vl")} <= set(flags)
    return [16] + [32] * wide + [64] * widest


def test_the_widest_form_of_this_processor_is_run_without_a_compiler(installed_folder: Path) -> None:
    found = native.load_library(build=False)
    assert get_width(found) == get_width(found, "double") == get_processor_widths()[-1]
    assert found is not None
    assert found.path == installed_folder / packaged.LIBRARY
    assert not (installed_folder.parent / "cache").exists()


def test_every_instruction_set_can_be_asked_for(installed_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And none is run that the processor lacks."""
    widths = get_processor_widths()
    for place, name in enumerate(packaged.SETS):
        monkeypatch.setenv(packaged.VARIABLE, name)
        monkeypatch.setattr(loader, "_holder", loader._LoaderState())
        assert get_width(native.load_library()) == widths[min(place, len(widths) - 1)]


def test_who_asks_for_a_compiler_gets_it(installed_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_COMPILER", "no-such-compiler")
    with pytest.warns(RuntimeWarning, match="no-such-compiler was not found"):
        assert native.load_library() is None


def test_who_wants_no_kernels_gets_none(installed_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_COMPILER", "none")
    assert native.load_library() is None


def test_a_library_for_another_machine_gives_way_to_the_compiler(installed_folder: Path) -> None:
    (installed_folder / packaged.LIBRARY).write_bytes(b"\x7fELF of another kind")
    with pytest.warns(RuntimeWarning, match="no C.. compiler was found"):
        assert native.load_library() is None


def test_the_wheel_and_the_first_use_compile_alike(hook: ModuleType) -> None:
    assert set(compiler.COMMON) <= set(hook.FLAGS)
    assert hook.LIBRARY == packaged.LIBRARY
    assert tuple(hook.SETS) == packaged.SETS


def test_a_source_names_its_functions_so_that_sets_can_be_told_apart() -> None:
    """Other names would clash when the same source is linked three times."""
    folder = Path(sys.modules[native.__name__].__file__ or "").parent
    for source in folder.glob("*.cpp"):
        exported = re.findall(r'extern "C"\s+\S+\s+(\w+)', source.read_text())
        assert exported
        assert all(name.startswith("regard_") for name in exported)
