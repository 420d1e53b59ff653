"""Compile the kernels for a wheel: one library with a plain, an AVX2 and an AVX-512 form of every function.

It is a build hook of hatchling that is off unless HATCH_BUILD_HOOK_ENABLE_CUSTOM is set, as `make wheel` does; a wheel
that is built without it has no library, and compiles the same sources when they are first used.

Each source is compiled once for each instruction set, in a namespace of its own and with the name of the set behind the
name of every function. `regard_instruction_set` says which of them the processor can run. OpenMP's functions are left
open: they are those of the libgomp that torch brings, which is found when the library is loaded.
"""

import os
import platform
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # called by hand
    BuildHookInterface = object  # type: ignore[assignment,misc]

ROOT = Path(__file__).resolve().parent.parent
NATIVE = "regard/compute/kernels/native"
LIBRARY = "kernels.so"
# As in regard.compute.kernels.native.compiler, which cannot be imported here: it needs torch.
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-w", "-fopenmp")
# Deallocation with a size needs a newer libstdc++ than the oldest manylinux has.
OLD = ("-fno-sized-deallocation", "-fvisibility-inlines-hidden", "-ffunction-sections", "-fdata-sections")
# The order is that of the linker: of a function of the standard library that all sets have, the plainest is kept.
SETS = {
    "plain": (),
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx2", "-mfma", *(f"-mavx512{part}" for part in ("f", "bw", "cd", "dq", "vl"))),
}
# Functions that got a new version in glibc 2.27 or 2.29; the old one is in every glibc.
VERSIONED = {"x86_64": ("GLIBC_2.2.5", "exp", "expf", "log", "logf", "pow", "powf", "exp2", "exp2f", "log2", "log2f")}


class KernelsHook(BuildHookInterface):  # type: ignore[misc,valid-type]
    """Puts the library into the wheel, and the platform into its name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell hatchling what to add."""
        if version == "editable":
            return
        folder = Path(tempfile.mkdtemp(prefix="regard-kernels-"))
        library = compile_library(ROOT / "src" / NATIVE, folder)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{platform.machine()}"
        build_data["force_include"][str(library)] = f"{NATIVE}/{LIBRARY}"


def compile_library(sources: Path, folder: Path) -> Path:
    """Compile every source for every instruction set of this machine's kind, and link them in `folder`."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    machine = platform.machine()
    old = _write_versions(folder, machine)
    objects: list[Path] = []
    names: set[str] = set()
    for name in SETS if machine == "x86_64" else ("plain",):
        header = _write_names(folder, name, names)
        flags = (*FLAGS, *OLD, *SETS[name], f"-Dregard=regard_{name}", "-include", str(header), "-include", str(old))
        made = [_compile(compiler, flags, source, folder / name) for source in sorted(sources.glob("*.cpp"))]
        names = names or list_functions(made)
        objects += made
    objects.append(_compile(compiler, FLAGS, Path(__file__).with_name("instruction_set.cpp"), folder))
    library = folder / LIBRARY
    link = ("-shared", "-Wl,--gc-sections", "-Wl,-z,noexecstack", "-s")
    _run(*compiler, *link, "-o", str(library), *map(str, objects), "-lm")
    return library


def list_functions(objects: list[Path]) -> set[str]:
    """Return the names of the functions that Python calls."""
    lines = _run("nm", "--defined-only", "--extern-only", *map(str, objects)).splitlines()
    return {line.split()[-1] for line in lines if " T regard_" in line}


def _write_names(folder: Path, name: str, functions: set[str]) -> Path:
    """Write a header that gives every function the name of its instruction set; the plain form keeps its own."""
    header = folder / f"{name}.hpp"
    header.write_text("".join(f"#define {each} {each}_{name}\n" for each in sorted(functions)))
    return header


def _write_versions(folder: Path, machine: str) -> Path:
    header = folder / "versions.hpp"
    version, *functions = VERSIONED.get(machine, ("",))
    header.write_text("".join(f'__asm__(".symver {each},{each}@{version}");\n' for each in functions))
    return header


def _compile(compiler: list[str], flags: tuple[str, ...], source: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    made = folder / f"{source.stem}.o"
    _run(*compiler, *flags, "-c", str(source), "-o", str(made))
    return made


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    (ROOT / "build").mkdir(exist_ok=True)
    print(compile_library(ROOT / "src" / NATIVE, Path(tempfile.mkdtemp(dir=ROOT / "build"))))
