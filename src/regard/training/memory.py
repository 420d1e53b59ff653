"""Check that a model fits in memory before the system kills the process for it."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from torch import nn

from regard.errors import InputError, wrong

COPIES = 4  # weights, gradients and two moments


def build_within_memory(build: Callable[[], nn.Module]) -> nn.Module:
    """Return the model that `build` makes; raise if its training does not fit in the memory of this machine."""
    with explain_too_large(), limit_memory(get_total_memory()):
        model = build()
    needed = COPIES * sum(parameter.nbytes for parameter in model.parameters())
    if needed > (get_total_memory() or needed):
        raise too_large_error(f"{needed / 2**30:,.1f} GiB for weights, gradients and moments")
    return model


@contextlib.contextmanager
def explain_too_large() -> Iterator[None]:
    """Turn the errors of a model whose sizes are too large, with or without memory, into one sentence."""
    try:
        yield
    except MemoryError:
        raise too_large_error("more memory than there is") from None
    except (RuntimeError, TypeError, OverflowError) as error:
        if any(word in str(error).lower() for word in ("allocate memory", "overflow", "too large", "too big")):
            raise too_large_error("more memory than there is") from None
        raise


def too_large_error(need: str) -> InputError:
    """Return the error of a model that does not fit in memory."""
    there = get_total_memory() / 2**30
    return wrong("model", f"one that needs {need}", f"at most {there:,.1f} GiB", "make its sizes smaller")


def get_total_memory() -> int:
    """Return the bytes of memory that this machine has; 0 if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


@contextlib.contextmanager
def limit_memory(memory: int) -> Iterator[None]:
    """Let the process grow by so many bytes and no more, if the system can enforce it (Linux)."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * os.sysconf("SC_PAGE_SIZE") + memory
    if not memory or (soft != resource.RLIM_INFINITY and soft < wanted):
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
