"""Position encodings: sinusoidal, learned, rotary."""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import nn

from regard.algebra.shapes import Float, Tensor, check_lead, describe
from regard.errors import wrong, wrong_kind
from regard.layers.frequencies import FrequencyScaling, LinearScaling, frequencies, read_scaling

Start = int | Tensor  # the position of the first vector: one for all sequences, or one for each


def sinusoids(length: int, dim: int, *, start: Start = 0, base: float = 10000.0) -> Float[Tensor, "*batch length dim"]:
    r"""Return a vector for each of the positions `start … start + length − 1`, in float64.

    $$ p_{i, 2j} = \sin(i \omega_j), \qquad p_{i, 2j + 1} = \cos(i \omega_j), \qquad \omega_j = b^{-2j/d} $$

    with $d$ = `dim` and $b$ = `base`. `start` may be a tensor, one for each sequence. Vaswani et al. 2017, §3.5.

    >>> sinusoids(1, 4)
    tensor([[0., 1., 0., 1.]], dtype=torch.float64)
    """
    angles = _compute_angles(length, frequencies(dim, base=base), start)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def rotation(delta: int | float, dim: int, *, base: float = 10000.0) -> Float[Tensor, "dim dim"]:
    r"""Return the matrix that moves every position by δ, in float64.

    $$ p_{i + \delta} = R_\delta\, p_i, \qquad R_\delta = \operatorname{diag}_j \begin{bmatrix} \cos \delta\omega_j &
    \sin \delta\omega_j \\ -\sin \delta\omega_j & \cos \delta\omega_j \end{bmatrix} $$

    with δ = `delta`: a shift is a rotation that does not depend on where it starts, so that a linear layer can attend
    at a fixed distance. Rotations compose: $R_{\delta + \epsilon} = R_\delta R_\epsilon$.

    >>> bool(torch.allclose(sinusoids(9, 6) @ rotation(3, 6).T, sinusoids(9, 6, start=3)))
    True
    """
    angle = delta * frequencies(dim, base=base)
    cosine, sine = angle.cos(), angle.sin()
    blocks = torch.stack([torch.stack([cosine, sine], dim=-1), torch.stack([-sine, cosine], dim=-1)], dim=-2)
    matrix: Tensor = torch.block_diag(*blocks)
    return matrix


class Sinusoidal(nn.Module):
    """Adds `sinusoids`. `start` is the position of the first vector: that of a cached step is the cache's length.

    If padded sequences continue at different positions, `start` is a tensor with one for each.

    >>> Sinusoidal(4)(torch.zeros(1, 2, 4))[0, 0]
    tensor([0., 1., 0., 1.])
    """

    def __init__(self, size: int, *, base: float = 10000.0) -> None:
        super().__init__()
        frequencies(size, base=base)
        self.size, self.base = size, base

    def forward(
        self, sequence: Float[Tensor, "*lead length size"], *, start: Start = 0
    ) -> Float[Tensor, "*lead length size"]:
        check_start(start, tuple(sequence.shape[:-2]))
        table = sinusoids(sequence.shape[-2], self.size, start=start, base=self.base)
        return sequence + table.to(sequence)


class LearnedPositions(nn.Module):
    r"""Adds a trained vector for each position.

    $$ x'_i = x_i + t_i $$

    with $t$ = `table`, for at most `most` positions. Gehring et al. 2017, §3.1.

    >>> LearnedPositions(5, 3)(torch.zeros(2, 5, 3)).shape
    torch.Size([2, 5, 3])
    """

    def __init__(self, most: int, size: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(most, size).normal_(std=0.02))

    def forward(
        self, sequence: Float[Tensor, "*lead length size"], *, start: Start = 0
    ) -> Float[Tensor, "*lead length size"]:
        if isinstance(start, Tensor):  # one for each sequence, or an input of an exported graph
            self._check(start, sequence)
            return sequence + self.table[start[..., None] + torch.arange(sequence.shape[-2], device=start.device)]
        self._check_length(start + sequence.shape[-2])
        return sequence + self.table[start : start + sequence.shape[-2]]

    def _check(self, start: Tensor, sequence: Tensor) -> None:
        check_start(start, tuple(sequence.shape[:-2]))
        if start.dim() and start.numel() and not torch.compiler.is_compiling():
            self._check_length(int(start.max()) + sequence.shape[-2])

    def _check_length(self, stop: int) -> None:
        most = self.table.shape[0]
        if stop > most:
            fix = f"build LearnedPositions({stop}, …), or cut the sequence"
            raise wrong("sequence", f"{stop} positions", f"at most {most}", fix)


class Rotary(nn.Module):
    r"""Rotates queries and keys by an angle that grows with their position: their product depends on the distance.

    $$ \begin{bmatrix} x'_{2j} \\ x'_{2j+1} \end{bmatrix} = \begin{bmatrix} \cos i\omega_j & -\sin i\omega_j \\
    \sin i\omega_j & \cos i\omega_j \end{bmatrix} \begin{bmatrix} x_{2j} \\ x_{2j+1} \end{bmatrix}, \qquad
    \langle x'_i, y'_j \rangle \text{ depends on } i - j \text{ alone} $$

    with $\omega$ = `frequencies` of the width and $i$ counted from `start`, a number or a tensor that broadcasts to the
    lead axes. Su et al. 2021, eq. 14-15. Neighboring coordinates are paired, as there and in `rotation`; with
    `layout="halves"` the first half is paired with the second, as in Llama and GPT-NeoX. Only the first `rotated`
    coordinates are rotated, if that is given (GPT-J, GPT-NeoX).

    `scaling` is for texts longer than those of the training: a number divides positions (Chen et al. 2023); see also
    `NtkScaling`, `DynamicNtkScaling`, `YarnScaling` and `Llama3Scaling`, or give the `rope_scaling` of a model of
    transformers.

    Lowers to: rotate in the layer, then the dot product.

    >>> Rotary(2)(torch.tensor([[1.0, 0.0]]), start=0)
    tensor([[1., 0.]])
    """

    def __init__(
        self,
        dim: int,
        *,
        base: float = 10000.0,
        layout: Literal["neighbors", "halves"] = "neighbors",
        rotated: int | None = None,
        scaling: float | FrequencyScaling | Mapping[str, Any] = 1.0,
    ) -> None:
        super().__init__()
        self.rotated = dim if rotated is None else rotated
        frequencies(self.rotated, base=base)
        if self.rotated > dim:
            raise wrong("rotated", rotated, f"at most dim={dim}", "leave it out to rotate all coordinates")
        scaling = read_scaling(scaling) if isinstance(scaling, Mapping) else scaling
        self.scaling = LinearScaling(scaling) if isinstance(scaling, int | float) else scaling
        if not isinstance(self.scaling, FrequencyScaling):
            fix = "use 4.0 for texts four times as long, or YarnScaling(4.0, trained=…)"
            raise wrong_kind("scaling", describe(scaling), "a number or a FrequencyScaling", fix)
        self.dim, self.base, self.layout = dim, base, layout

    def forward(
        self, heads: Float[Tensor, "*lead length dim"], *, start: Start = 0, positions: Tensor | None = None
    ) -> Float[Tensor, "*lead length dim"]:
        """Return the rotated heads; `positions`, `(*lead, length)`, are given if they are not consecutive."""
        check_start(start, tuple(heads.shape[:-2]))
        if heads.shape[-1] != self.dim:
            fix = f"build Rotary({heads.shape[-1]})"
            raise wrong("rotary.dim", self.dim, f"the width of one head, {heads.shape[-1]}", fix)
        cosine, sine = self._compute_tables(heads, start, positions)
        turned, rest = heads.split([self.rotated, self.dim - self.rotated], dim=-1)
        pairs, axis = ((2, -1), -2) if self.layout == "halves" else ((-1, 2), -1)
        first, second = turned.unflatten(-1, pairs).unbind(axis)
        turned = torch.stack([first * cosine - second * sine, first * sine + second * cosine], dim=axis)
        turned = turned.flatten(-2).to(heads.dtype)
        return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned

    def _compute_tables(self, heads: Tensor, start: Start, positions: Tensor | None) -> list[Tensor]:
        """Return the cosines and sines of the angles, as wide as the heads but not below float32."""
        length = self._find_length(heads, start, positions) if self.scaling.dynamic else 0
        omega = self.scaling.scale(self.rotated, self.base, length)
        if positions is None:
            angles = _compute_angles(heads.shape[-2], omega, start)
        else:
            angles = positions[..., None].double() * omega.to(positions.device)
        wide = torch.promote_types(heads.dtype, torch.float32)
        tables = (self.scaling.amplitude * table for table in (angles.cos(), angles.sin()))
        return [table.to(device=heads.device, dtype=wide) for table in tables]

    @staticmethod
    def _find_length(heads: Tensor, start: Start, positions: Tensor | None) -> int | Tensor:
        """Return the last position + 1 of all sequences."""
        if positions is not None:
            return positions.amax() + 1
        return heads.shape[-2] + (start.amax() if isinstance(start, Tensor) else start)


def check_start(start: Start, lead: tuple[int, ...]) -> None:
    """Raise unless this is a position, or one for each sequence."""
    if not isinstance(start, Tensor):
        return
    if start.is_floating_point() or start.is_complex() or start.dtype == torch.bool:
        raise wrong_kind("start", describe(start), "whole numbers", "write start.long()")
    check_lead("start", tuple(start.shape), lead)


def _compute_angles(length: int, omega: Float[Tensor, " half"], start: Start) -> Float[Tensor, "*batch length half"]:
    """Return position times frequency. In float64: the sine of a large angle in float32 would lose its digits."""
    if not isinstance(start, Tensor):
        return torch.arange(start, start + length, dtype=torch.float64)[:, None] * omega
    positions = start[..., None] + torch.arange(length, device=start.device)
    return positions[..., None].double() * omega.to(start.device)
