"""Whether our own loops can work on tensors."""

import torch
from torch import Tensor

from regard.compute.kernels.native.loader import Library, load_library
from regard.compute.kernels.native.tensor_memory import is_reachable

WORTH_COMPILING = 1 << 16  # numbers; a library that is there already is used for any size
SUFFIX = {torch.float32: "float", torch.float64: "double"}


def find_library(tensor: Tensor, *others: Tensor | None, size: int | None = None) -> Library | None:
    """The library, or None where torch has to do it: elsewhere, in another precision, or with no memory to point to.

    It is compiled where the tensor, or a table of that `size`, is worth it.
    """
    if tensor.dtype not in SUFFIX or not is_reachable(tensor, *others):
        return None
    return load_library(build=(tensor.numel() if size is None else size) >= WORTH_COMPILING)
