"""Whether our own loops can work on a tensor."""

import torch
from torch import Tensor

from regard.numerics.native.loading import Library, library

WORTH_COMPILING = 1 << 16  # numbers; a library that is there already is used for any size
SUFFIX = {torch.float32: "float", torch.float64: "double"}


def library_for(tensor: Tensor) -> Library | None:
    """The library, or None where torch has to do it: elsewhere, in another precision, or with no memory to point to."""
    if tensor.device.type != "cpu" or tensor.dtype not in SUFFIX:
        return None
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return None
    return library(build=tensor.numel() >= WORTH_COMPILING)
