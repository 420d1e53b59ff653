"""Check that a model fits in memory before the system kills the process for it."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from torch import nn

from regard.errors import InputError, wrong
from regard.training.config import walk_fields
from regard.training.settings import RunConfig

COPIES = 4  # weights, gradients and two moments
LAYER_FIELDS = ("layers", "decoder_layers", "hops")  # numbers of modules: many take long to build even if small
MAX_LAYERS = 10_000


def build_within_memory(build: Callable[[], nn.Module], config: RunConfig) -> nn.Module:
    """Return the model that `build` makes; raise if its training does not fit in the memory of this machine."""
    for name, value in walk_fields(config):
        if name.rpartition(".")[2] in LAYER_FIELDS and isinstance(value, int) and value > MAX_LAYERS:
            raise wrong(name, value, f"at most {MAX_LAYERS:,}", f"give {name} a smaller value")
    try:
        with limit_memory(get_total_memory()):
            model = build()
    except MemoryError:
        raise too_large_error("more memory than there is") from None
    except (RuntimeError, TypeError, OverflowError) as error:
        if any(word in str(error).lower() for word in ("allocate memory", "overflow", "too large", "too big")):
            raise too_large_error("more memory than there is") from None
        raise
    needed = COPIES * sum(parameter.nbytes for parameter in model.parameters())
    if needed > (get_total_memory() or needed):
        raise too_large_error(f"{needed / 2**30:,.1f} GiB for weights, gradients and moments")
    return model


def too_large_error(need: str) -> InputError:
    """Return the error of a model that does not fit in memory."""
    there = get_total_memory() / 2**30
    return wrong("model", f"one that needs {need}", f"at most {there:,.1f} GiB", "make its sizes smaller")


def get_total_memory() -> int:
    """Return the bytes of memory that this machine has; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


@contextlib.contextmanager
def limit_memory(memory: int) -> Iterator[None]:
    """Let the process grow by so many bytes and no more, where the system can see to that (Linux)."""
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
