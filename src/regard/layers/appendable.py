"""A tensor that more vectors can be appended to without copying those that are there."""

from dataclasses import dataclass

import torch

from regard.algebra.shapes import Float, Int, Tensor

RESERVE = 16  # vectors that are allocated in advance, at least


class _Buffer:
    """A tensor with free space at its end, shared by all that were appended to one beginning."""

    __slots__ = ("taken", "tensor")

    def __init__(self, tensor: Tensor, taken: int) -> None:
        self.tensor, self.taken = tensor, taken


@dataclass(frozen=True, slots=True, eq=False)
class AppendableTensor:
    """Vectors along the second-last axis that more can be appended to, without copying those that are there.

    Appending returns another value and leaves this one as it is: appending to the newest writes behind it, appending to
    an older one copies. With gradients, or in a graph, everything is copied.

    >>> one = AppendableTensor.from_vectors(torch.zeros(2, 1, 3))
    >>> left, right = one.append(torch.ones(2, 1, 3)), one.append(-torch.ones(2, 1, 3))
    >>> left.view()[0, 1], right.view()[0, 1]
    (tensor([1., 1., 1.]), tensor([-1., -1., -1.]))
    """

    buffer: _Buffer
    length: int

    @classmethod
    def from_vectors(cls, vectors: Float[Tensor, "*lead slot width"]) -> "AppendableTensor":
        """Return these vectors, without free space."""
        return cls(_Buffer(vectors, vectors.shape[-2]), vectors.shape[-2])

    def view(self) -> Float[Tensor, "*lead slot width"]:
        """Return the vectors so far."""
        return self.buffer.tensor[..., : self.length, :]

    def append(self, later: Float[Tensor, "*lead slot width"]) -> "AppendableTensor":
        """Return these vectors, then the later ones."""
        if not self._can_write(later):
            return AppendableTensor.from_vectors(torch.cat([self.view(), later], dim=-2))
        stop = self.length + later.shape[-2]
        buffer = self.buffer
        foreign = buffer.tensor.is_inference() != torch.is_inference_mode_enabled()
        if foreign or buffer.taken != self.length or stop > buffer.tensor.shape[-2]:
            buffer = _Buffer(self._copy_wider(max(RESERVE, stop + stop // 2)), self.length)
        # Through .data, which counts no version: what was read before has not changed.
        buffer.tensor.data[..., self.length : stop, :] = later
        buffer.taken = stop
        return AppendableTensor(buffer, stop)

    def _can_write(self, later: Tensor) -> bool:
        """Return whether these vectors may be written into memory that others see the beginning of."""
        own, mapped = self.buffer.tensor, torch._C._are_functorch_transforms_active()
        alike = later.shape[:-2] == own.shape[:-2] and later.dtype == own.dtype and later.device == own.device
        return alike and not (mapped or torch.is_grad_enabled() or torch.compiler.is_compiling())

    def _copy_wider(self, slots: int) -> Tensor:
        vectors = self.view()
        wider = vectors.new_empty(*vectors.shape[:-2], slots, vectors.shape[-1])
        wider[..., : self.length, :] = vectors
        return wider

    def select_rows(self, index: Int[Tensor, " row"]) -> "AppendableTensor":
        """Return some rows of the first axis."""
        return AppendableTensor.from_vectors(self.view().index_select(0, index))

    def select_slots(self, index: Int[Tensor, "row slot"]) -> "AppendableTensor":
        """Return some slots, given for each row of the first axis."""
        vectors = self.view()
        wide = index.view(index.shape[0], *(1,) * (vectors.dim() - 3), index.shape[1], 1)
        wide = wide.expand(*vectors.shape[:-2], index.shape[1], vectors.shape[-1])
        return AppendableTensor.from_vectors(vectors.gather(-2, wide))
