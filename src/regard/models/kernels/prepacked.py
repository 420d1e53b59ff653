r"""Matrices in the order in which the processor multiplies, made once for a model that is not trained any more.

torch's own product brings a matrix into that order at every call. oneDNN, which comes with torch, keeps it so:

- `float32`: the same numbers to rounding;
- `bfloat16`: inputs and weights rounded to 8 bits of mantissa, sums in float32;
- `int8`: weights rounded to 8 bits by row, inputs to 8 bits by call, sums in 32 bits.

A `PrepackedMatrix` takes the place of a layer's weight. It is a tensor with the original numbers; products with it go
to oneDNN, everything else that is done with it sees the original.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import nn

from regard.algebra.shapes import Float, Tensor
from regard.errors import wrong

Precision = Literal["float32", "bfloat16", "int8"]
Product = Callable[[Tensor, Tensor | None], Tensor]
LEAST_NUMBERS = 1 << 12  # of a matrix: a smaller product takes less time than the call of oneDNN
CHECKED_ROWS = 3  # of the inputs with which a new product is compared with torch's own
# How far a product may be from torch's own, relative to the sum of the absolute products.
ALLOWED_ERROR: Mapping[Precision, float] = {"float32": 1e-5, "bfloat16": 2e-2, "int8": 5e-2}


class PrepackedMatrix(torch.Tensor):
    """A weight whose product with inputs is computed by oneDNN, in a precision.

    >>> matrix = PrepackedMatrix.from_weight(torch.eye(64), "float32")
    >>> torch.nn.functional.linear(torch.ones(2, 64), matrix).sum()
    tensor(128.)
    """

    product: Product
    precision: Precision
    slices: dict[tuple[int, int], "PrepackedMatrix"]  # those that were asked for: parts of a model take some rows alone

    @staticmethod
    def from_weight(weight: Float[Tensor, "output input"], precision: Precision) -> "PrepackedMatrix":
        """Return a weight for inference; raise if this torch or this processor cannot compute with it."""
        plain = weight.detach().contiguous()
        matrix: PrepackedMatrix = torch.Tensor._make_subclass(PrepackedMatrix, plain)
        matrix.product, matrix.precision, matrix.slices = _build_product(plain, precision), precision, {}
        return matrix

    def slice_rows(self, start: int, stop: int) -> "PrepackedMatrix":
        """Return some of the rows, prepacked once."""
        if (start, stop) not in self.slices:
            rows = self.as_subclass(torch.Tensor)[start:stop]
            self.slices[start, stop] = PrepackedMatrix.from_weight(rows, self.precision)
        return self.slices[start, stop]

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        own = HANDLERS.get(func)
        found = NotImplemented if own is None else own(*args, **(kwargs or {}))
        if found is not NotImplemented:
            return found
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def _multiply(inputs: Tensor, weight: Any, bias: Tensor | None = None) -> Any:
    """Return `F.linear` of a prepacked weight."""
    if not isinstance(weight, PrepackedMatrix) or inputs.dtype != weight.dtype or not inputs.numel():
        return NotImplemented
    return weight.product(inputs, bias) if inputs.dim() > 1 else weight.product(inputs[None], bias)[0]


def _slice(matrix: PrepackedMatrix, index: Any) -> Any:
    """Return some rows as a prepacked matrix, if the index is a range of rows."""
    if not isinstance(index, slice) or index.step not in (None, 1):
        return NotImplemented
    start, stop, _ = index.indices(len(matrix))
    return matrix.slice_rows(start, stop) if start < stop else NotImplemented


def _step_gru(inputs: Tensor, state: Tensor, *parts: Tensor) -> Tensor:
    """Return `torch.gru_cell`, whose two products are the only ones of matrices."""
    weight, hidden_weight, bias, hidden_bias = parts
    given, own = F.linear(inputs, weight, bias), F.linear(state, hidden_weight, hidden_bias)
    size = state.shape[-1]
    gates = torch.sigmoid_(given[:, : 2 * size] + own[:, : 2 * size])
    candidate = torch.addcmul(given[:, 2 * size :], gates[:, :size], own[:, 2 * size :]).tanh_()
    return torch.lerp(candidate, state, gates[:, size:])


def _step_lstm(inputs: Tensor, before: tuple[Tensor, Tensor], *parts: Tensor) -> tuple[Tensor, Tensor]:
    """Return `torch.lstm_cell`."""
    weight, hidden_weight, bias, hidden_bias = parts
    gates = F.linear(inputs, weight, bias) + F.linear(before[0], hidden_weight, hidden_bias)
    into, forget, candidate, out = gates.chunk(4, dim=-1)
    cell = torch.addcmul(forget.sigmoid() * before[1], into.sigmoid(), candidate.tanh())
    return out.sigmoid() * cell.tanh(), cell


HANDLERS: Mapping[Any, Callable[..., Any]] = {
    F.linear: _multiply,
    torch.Tensor.__getitem__: _slice,
    torch.gru_cell: _step_gru,
    torch.lstm_cell: _step_lstm,
}


def _build_product(weight: Tensor, precision: Precision) -> Product:
    """Return the product with a weight, compared with torch's own on a few inputs."""
    try:
        product = BUILDERS[precision](weight)
        inputs = torch.linspace(-1, 1, CHECKED_ROWS * weight.shape[1]).view(CHECKED_ROWS, -1)
        error = (product(inputs, None) - F.linear(inputs, weight)).abs()
        size = F.linear(inputs.abs(), weight.abs()).amax().clamp_min(torch.finfo(weight.dtype).tiny)
    except (AttributeError, RuntimeError, NotImplementedError) as problem:
        raise unsupported_error(precision, str(problem).splitlines()[0]) from None
    if not bool((error <= ALLOWED_ERROR[precision] * size).all()):
        raise unsupported_error(precision, f"a product that is off by {float((error / size).amax()):.1g}")
    return product


def _build_float32(weight: Tensor) -> Product:
    operator = torch.ops.mkldnn._linear_pointwise
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
    return lambda inputs, bias: operator(inputs, packed, bias, "none", [], "")


def _build_bfloat16(weight: Tensor) -> Product:
    operator = torch.ops.mkldnn._linear_pointwise
    packed = torch.ops.mkldnn._reorder_linear_weight(weight.bfloat16(), None)

    def multiply(inputs: Tensor, bias: Tensor | None) -> Tensor:
        found: Tensor = operator(inputs.bfloat16(), packed, None, "none", [], "").float()
        return found if bias is None else found.add_(bias)

    return multiply


def _build_int8(weight: Tensor) -> Product:
    scales = weight.abs().amax(1).clamp_min(torch.finfo(weight.dtype).tiny).double() / 127
    with warnings.catch_warnings():  # torch announces that this form of quantized tensors will go
        warnings.simplefilter("ignore")
        quantized = torch.quantize_per_channel(weight, scales, torch.zeros_like(scales).long(), 0, torch.qint8)
    packed, operator = torch.ops.quantized.linear_prepack(quantized, None), torch.ops.quantized.linear_dynamic
    # Without VNNI two products are added in 16 bits, which inputs of 8 bits overflow: those have 7.
    narrow = not getattr(torch.cpu, "_is_vnni_supported", lambda: False)()

    def multiply(inputs: Tensor, bias: Tensor | None) -> Tensor:
        found: Tensor = operator(inputs, packed, narrow)
        return found if bias is None else found.add_(bias)

    return multiply


BUILDERS: Mapping[Precision, Callable[[Tensor], Product]] = {
    "float32": _build_float32,
    "bfloat16": _build_bfloat16,
    "int8": _build_int8,
}


def unsupported_error(precision: Precision, got: str) -> Exception:
    """Return the error for a precision that this torch or this processor does not have."""
    return wrong("precision", f"{precision} ({got})", "one that this machine has", "use --precision float32")


def prepack(model: nn.Module, precision: Precision = "float32") -> None:
    """Prepack the matrices of a model in place. It can no longer be trained, saved or moved to another device.

    Matrices of linear layers and of recurrent cells; embeddings stay as they are, even if they are tied to a matrix.
    """
    if precision not in get_args(Precision):
        raise wrong("precision", precision, f"one of {', '.join(get_args(Precision))}", "use one of them")
    done: dict[int, PrepackedMatrix] = {}
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.GRU | nn.LSTM):
            for name, weight in list(module.named_parameters(recurse=False)):
                if weight.dim() == 2 and weight.numel() >= LEAST_NUMBERS and weight.dtype == torch.float32:
                    if id(weight) not in done:
                        done[id(weight)] = PrepackedMatrix.from_weight(weight, precision)
                    delattr(module, name)
                    setattr(module, name, done[id(weight)])


def is_on_cpu(model: nn.Module) -> bool:
    """Return whether the parameters of a model are in the memory of the CPU."""
    return all(parameter.is_cpu for parameter in model.parameters())
