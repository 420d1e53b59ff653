"""The library that a wheel brings: every function for plain processors, AVX2 and AVX-512 (`release/kernels.py`).

It names no OpenMP runtime, because torch's own has another file name in each version of torch: that one is opened
first, for all to see, so that our loops and torch's share one pool of threads.
"""

import ctypes
import os
from pathlib import Path

from regard.compute.kernels.native import compiler

LIBRARY = "kernels.so"
VARIABLE = "REGARD_INSTRUCTIONS"
SETS = ("plain", "avx2", "avx512")  # from the one that runs everywhere to the fastest


def find_packaged(folder: Path) -> Path | None:
    """Return the library in `folder`, unless the user asked for a compiler or for flags of their own."""
    asked = any(os.environ.get(name) for name in (compiler.VARIABLE, compiler.FLAGS))
    library = folder / LIBRARY
    return library if not asked and library.is_file() else None


def open_packaged(library: Path) -> tuple[ctypes.CDLL, str]:
    """Open it, and return it with what stands behind the names of the functions that this processor is to run.

    Raises OSError if it cannot be opened: no OpenMP runtime, or another kind of machine.
    """
    _open_threads()
    opened = ctypes.CDLL(str(library))
    fastest = int(opened.regard_instruction_set())
    wanted = os.environ.get(VARIABLE, "")
    chosen = min(SETS.index(wanted), fastest) if wanted in SETS else fastest
    return opened, f"_{SETS[chosen]}" if chosen else ""


def _open_threads() -> None:
    """Open torch's OpenMP runtime so that all libraries find it, or the system's if torch brings none."""
    for runtime in [*map(str, compiler.find_torch_gomp()), "libgomp.so.1"]:
        try:
            ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return
