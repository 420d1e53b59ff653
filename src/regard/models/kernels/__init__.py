"""Kernels that only models use; their C++ is built with the rest, in `compute/kernels/native`."""
