"""Room for large results."""

import ctypes

import torch
from torch import Tensor

from regard.numerics.native.loading import Library

POINTER, SIZE = ctypes.c_void_p, ctypes.c_int64
LARGE = 4 << 20  # bytes: twice a large page, so that there is at least one whole


def empty_like(library: Library, table: Tensor) -> Tensor:
    """An empty tensor of the same shape, in large pages where the system has them and it is worth it."""
    result = torch.empty(table.shape, dtype=table.dtype)
    size = result.numel() * result.element_size()
    if size >= LARGE:
        library.function("regard_large_pages", POINTER, SIZE)(result.data_ptr(), size)
    return result
