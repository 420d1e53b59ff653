"""The one way from a tensor to a pointer: what our own loops are told to read is there, and lies as they expect it.

Loops in C++ believe what they are told. A tensor that only stands for numbers (FakeTensorMode, the meta device, vmap),
that has gaps between its numbers, or that torch is to negate when it is read, would end the process or give wrong
numbers. `reachable` is asked first, so that torch can compute what cannot be pointed at; `packed` and `adjacent` bring
a tensor into a form that a loop can walk; `address` and `corner` check that once more and give the pointer.
"""

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from regard.errors import InputError, wrong

_PLAIN = (Tensor, Parameter)  # others may stand for numbers that are elsewhere, or nowhere
_strided = torch.strided
_compiling = torch.compiler.is_compiling
_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._are_functorch_transforms_active


def reachable(*tensors: Tensor | None) -> bool:
    """Whether a loop of ours may be pointed at all of these: no transform or mode looks on, and there is memory."""
    if _compiling() or _modes() or is_mapped():
        return False
    for tensor in tensors:  # noqa: SIM110  # a generator would take as long again
        if tensor is not None and not has_memory(tensor):
            return False
    return True


def is_mapped() -> bool:
    """Return whether torch.func maps or differentiates what is computed now, or derivatives are carried forward."""
    return _transforms() or is_forward_mode()


def is_forward_mode() -> bool:
    """Return whether tensors may carry their derivatives forward: torch.func.jvp and jacfwd, torch.autograd.forward_ad.

    A loop of ours, and a function without a `jvp`, would lose them.
    """
    return forward_ad._current_level >= 0


def has_memory(tensor: Tensor) -> bool:
    """Whether there are numbers in this process's memory behind a tensor.

    >>> has_memory(torch.ones(2)), has_memory(torch.ones(2, device="meta")), has_memory(torch.ones(2).to_sparse())
    (True, False, False)
    """
    if type(tensor) not in _PLAIN or not tensor.is_cpu or tensor.layout is not _strided or tensor.is_nested:
        return False
    try:
        return bool(tensor.data_ptr()) or not tensor.numel()
    except RuntimeError:  # a tensor that escaped from a transform
        return False


def known(tensor: Tensor) -> bool:
    """Whether its numbers can be looked at from Python, on whatever device: it stands for no others.

    >>> known(torch.ones(2)), known(torch.ones(2, device="meta"))
    (True, False)
    """
    return not (_compiling() or only_shapes(tensor) or (_transforms() and is_functorch_wrapped_tensor(tensor)))


def only_shapes(tensor: Tensor) -> bool:
    """Whether what is computed from it has a shape and no numbers: on the meta device, and with fake tensors."""
    if tensor.is_meta or isinstance(tensor, FakeTensor):
        return True
    return bool(_modes()) and torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


def packed(tensor: Tensor) -> Tensor:
    """With all numbers one after another, as they are to be read."""
    return tensor.contiguous().resolve_neg()


def adjacent(tensor: Tensor) -> Tensor:
    """With the numbers of a row next to each other, as they are to be read; rows may be anywhere."""
    if not tensor.is_contiguous() and tensor.stride()[-1] != 1:
        tensor = tensor.contiguous()
    return tensor.resolve_neg()


def address(tensor: Tensor | None) -> int | None:
    """Where the numbers of a packed tensor begin; None for none."""
    if tensor is None:
        return None
    if not tensor.is_contiguous():
        raise _unfit(tensor, "numbers one after another")
    return _place(tensor, tensor.numel())


def corner(tensor: Tensor | None) -> int | None:
    """Where the numbers of a tensor begin whose rows are walked by its strides; None for none."""
    if tensor is None:
        return None
    if tensor.is_contiguous():
        return _place(tensor, tensor.numel())
    shape, stride = tensor.shape, tensor.stride()
    if shape[-1] != 1 and stride[-1] != 1:
        raise _unfit(tensor, "the numbers of a row next to each other")
    reach = 1
    for size, step in zip(shape, stride, strict=True):
        reach += (size - 1) * step
    return _place(tensor, reach if tensor.numel() else 0)


def fresh(tensor: Tensor | None) -> int | None:
    """Where a tensor begins that we have just made, or a part of one that was checked; None for none."""
    if tensor is None:
        return None
    place = tensor.data_ptr()
    if not place and tensor.numel():
        raise _unfit(tensor, "memory behind it")
    return place


def _place(tensor: Tensor, reach: int) -> int:
    """The pointer, if memory holds `reach` numbers from there on."""
    if not tensor.is_cpu or tensor.is_neg():
        raise _unfit(tensor, "plain numbers on the CPU")
    place = tensor.data_ptr()
    if not reach:
        return place
    if not place or tensor.untyped_storage().nbytes() < (tensor.storage_offset() + reach) * tensor.itemsize:
        raise _unfit(tensor, "as much memory as its shape says")
    return place


def _unfit(tensor: Tensor, expected: str) -> InputError:
    got = f"{type(tensor).__name__} {tuple(tensor.shape)} on {tensor.device} with strides {tuple(tensor.stride())}"
    return wrong("a tensor for a compiled kernel", got, expected, "give a plain tensor, or set REGARD_COMPILER=none")
