"""The one way from a tensor to a pointer: what our loops read is in memory, and lies as they expect it.

Loops in C++ trust what they are given. A tensor that only stands for numbers (FakeTensorMode, the meta device, vmap),
that has gaps between its numbers, or that torch negates when it is read, would end the process or give wrong numbers.
`is_reachable` is asked first, so that torch can compute what cannot be pointed at; `make_contiguous` and
`make_rows_contiguous` give a tensor a layout that a loop can walk; `get_address` and `get_strided_address` check the
layout once more and return the pointer.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from regard.errors import InputError, wrong

_PLAIN = (Tensor, Parameter)  # other types may hold their numbers elsewhere, or have none
_strided = torch.strided
_compiling = torch.compiler.is_compiling
_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active


def _answer_no() -> bool:
    return False


# torch 2.6 does not say whether it exports: graphs for other runtimes need 2.7.
is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", _answer_no)


def is_reachable(*tensors: Tensor | None) -> bool:
    """Return whether our loops may read all of these: no transform or mode intercepts them, and they have memory."""
    if _compiling() or is_intercepted() or is_mapped():
        return False
    for tensor in tensors:  # noqa: SIM110  # a generator would take as long again
        if tensor is not None and not has_memory(tensor):
            return False
    return True


def is_intercepted() -> bool:
    """Return whether a TorchDispatchMode, such as FakeTensorMode, sees every operation."""
    return _modes() > 0


def is_mapped() -> bool:
    """Return whether torch.func maps or differentiates what is computed now, or derivatives are carried forward."""
    return _transforms() or is_forward_mode()


def is_traced() -> bool:
    """Return whether nothing may be decided by the content of a tensor: it is traced, or mapped by torch.func."""
    return _compiling() or is_mapped()


def is_forward_mode() -> bool:
    """Return whether tensors may carry their derivatives forward: torch.func.jvp and jacfwd, torch.autograd.forward_ad.

    A loop of ours, and a function without a `jvp`, would lose them.
    """
    return forward_ad._current_level >= 0


def has_memory(tensor: Tensor) -> bool:
    """Return whether a tensor's numbers are in this process's memory.

    >>> has_memory(torch.ones(2)), has_memory(torch.ones(2, device="meta")), has_memory(torch.ones(2).to_sparse())
    (True, False, False)
    """
    if type(tensor) not in _PLAIN or not tensor.is_cpu or tensor.layout is not _strided or tensor.is_nested:
        return False
    try:
        return bool(tensor.data_ptr()) or not tensor.numel()
    except RuntimeError:  # a tensor that escaped from a transform
        return False


def is_readable(*tensors: Tensor) -> bool:
    """Return whether Python may read the numbers of all of these, on whatever device: they stand for no others.

    >>> is_readable(torch.ones(2)), is_readable(torch.ones(2, device="meta"))
    (True, False)
    """
    if _compiling():
        return False
    wrapped = _transforms()
    return not any(has_only_shape(each) or (wrapped and is_functorch_wrapped_tensor(each)) for each in tensors)


def has_only_shape(tensor: Tensor) -> bool:
    """Return whether what is computed from it has a shape but no numbers: meta and fake tensors."""
    if tensor.is_meta or isinstance(tensor, FakeTensor):
        return True
    return bool(_modes()) and torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


def make_contiguous(tensor: Tensor) -> Tensor:
    """Return the tensor with all numbers one after another, and none to be negated when read."""
    return tensor.contiguous().resolve_neg()


def make_rows_contiguous(tensor: Tensor) -> Tensor:
    """Return the tensor with the numbers of a row next to each other; rows may be anywhere."""
    if not tensor.is_contiguous() and tensor.stride()[-1] != 1:
        tensor = tensor.contiguous()
    return tensor.resolve_neg()


def get_address(tensor: Tensor | None) -> int | None:
    """Return the address of a contiguous tensor; None for none."""
    if tensor is None:
        return None
    if not tensor.is_contiguous():
        raise _make_error(tensor, "numbers one after another")
    return _check_storage(tensor, tensor.numel())


def get_strided_address(tensor: Tensor | None) -> int | None:
    """Return the address of a tensor whose rows are walked by its strides; None for none."""
    if tensor is None:
        return None
    if tensor.is_contiguous():
        return _check_storage(tensor, tensor.numel())
    shape, stride = tensor.shape, tensor.stride()
    if shape[-1] != 1 and stride[-1] != 1:
        raise _make_error(tensor, "the numbers of a row next to each other")
    reach = 1
    for size, step in zip(shape, stride, strict=True):
        reach += (size - 1) * step
    return _check_storage(tensor, reach if tensor.numel() else 0)


def get_any_address(tensor: Tensor | None) -> int | None:
    """Return the address of a table, whose numbers lie one after another, or of a mask, which is walked by strides."""
    is_mask = tensor is not None and tensor.dtype == torch.bool
    return get_strided_address(tensor) if is_mask else get_address(tensor)


def get_unchecked_address(tensor: Tensor | None) -> int | None:
    """Return the address of a tensor that we have just made, or of a part of one that was checked; None for none."""
    if tensor is None:
        return None
    place = tensor.data_ptr()
    if not place and tensor.numel():
        raise _make_error(tensor, "memory behind it")
    return place


def _check_storage(tensor: Tensor, reach: int) -> int:
    """Return the address if memory holds `reach` numbers from there on; raise if not."""
    if not tensor.is_cpu or tensor.is_neg():
        raise _make_error(tensor, "plain numbers on the CPU")
    place = tensor.data_ptr()
    if not reach:
        return place
    if not place or tensor.untyped_storage().nbytes() < (tensor.storage_offset() + reach) * tensor.itemsize:
        raise _make_error(tensor, "as much memory as its shape says")
    return place


def _make_error(tensor: Tensor, expected: str) -> InputError:
    got = f"{type(tensor).__name__} {tuple(tensor.shape)} on {tensor.device} with strides {tuple(tensor.stride())}"
    return wrong("a tensor for a compiled kernel", got, expected, "give a plain tensor, or set REGARD_COMPILER=none")
