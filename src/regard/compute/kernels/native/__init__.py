"""Our own C++ loops: compiled in the wheel, or on the user's machine when they are first worth it.

Every `.cpp` file beside this one goes into one shared library with a plain C interface: raw pointers and sizes, no
torch headers, so that it compiles in seconds. To add a function: write `extern "C" int regard_name_float(...)` in a
source file here, and bind it where it is used:

    library = native.load_library()                  # None: no compiler, so run the plain torch form
    run = library.function("regard_name_float", native.POINTER, native.POINTER, native.SIZE)

Nothing happens at import. `load_library()` opens what the wheel brought (`packaged.py`); else it compiles once for each
machine, and keeps the result in a cache folder whose name tells what it was made from: sources, flags, compiler and
processor.
"""

import ctypes

from regard.compute.kernels.native.loader import Library, describe_state, get_failure, get_loaded, load_library

POINTER = ctypes.c_void_p
SIZE = ctypes.c_int64

__all__ = ["POINTER", "SIZE", "Library", "describe_state", "get_failure", "get_loaded", "load_library"]
