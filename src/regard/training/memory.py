"""Whether the machine has the memory that a model needs."""

import os
from typing import Any

import torch

from regard.errors import wrong
from regard.training.runtime import Runtime
from regard.training.task import Task


def check_size(task: Task[Any], runtime: Runtime) -> None:
    """Raises before memory is asked for that the machine does not have: a model is first built without any."""
    try:
        with torch.device("meta"):
            model = task.model()
    except (RuntimeError, NotImplementedError) as error:
        if "overflow" not in str(error):
            return  # one that only a real device can build; what is wrong with it, if anything, is said there
        raise wrong("model", "sizes beyond any memory", "a model that fits", "make its sizes smaller") from None
    needed = 4 * sum(tensor.nbytes for tensor in model.parameters())  # weights, gradients and two moments
    there = memory_of(runtime.device)
    if there and needed > there * (runtime.part.world if runtime.sharded else 1):
        got = f"one that needs {needed / 2**30:,.1f} GiB for weights, gradients and moments"
        raise wrong("model", got, f"at most {there / 2**30:,.1f} GiB, which are there", "make its sizes smaller")


def memory_of(device: torch.device) -> int:
    """The bytes of memory that a device has; 0 where that is not known."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
