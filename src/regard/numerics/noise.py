r"""Noise by address: one number for one (seed, lead, row, column), whoever computes it, in any tile.

A row's key is two 32-bit words from the seed, the index over the leading axes and the row; the noise of a
column is $\mathrm{mix}(\mathrm{mix}(\mathrm{column} \oplus k_0) + k_1)$. Forward, backward, a tile that is
looked at, eager, compiled and native code all get the same bits, and nothing has to be stored in between.

mix is lowbias32 (C. Wellons, *Prospecting for hash functions*, 2018, nullprogram.com/blog/2018/07/31): a
bijection of 32 bits in which each bit of the input changes each bit of the output with a probability close to
one half. Counters instead of a state: Salmon et al. 2011, *Parallel random numbers: as easy as 1, 2, 3*.
"""

import ctypes
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from regard.errors import wrong
from regard.numerics import native
from regard.numerics.native import gate
from regard.numerics.native.reach import WORTH_COMPILING
from regard.shapes import Float, Int

Seed = int | Int[Tensor, ""]
Rows = Int[Tensor, "L"]
Columns = Int[Tensor, "S"]
Noise = Float[Tensor, "*lead L S"]

# The golden ratio in 32 bits, as a signed number: sets the second key's seed apart from the first's.
GOLDEN = -0x61C88647


def draw_seed(device: torch.device | str = "cpu") -> Int[Tensor, ""]:
    """A seed from torch's own generator, so that `torch.manual_seed` governs; it stays on the device."""
    if torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active():
        return torch.randint(0, 2**63 - 1, (), dtype=torch.int64, device=device)
    try:
        return torch.randint(0, 2**63 - 1, (), dtype=torch.int64, device=device)
    except RuntimeError as error:
        expected, fix = "to be told whether calls draw the same", 'write vmap(…, randomness="different"), or "same"'
        raise wrong("vmap", "a call that draws random numbers", expected, fix) from error


def uniform(seed: Seed, lead: Sequence[int], rows: Rows, columns: Columns) -> Noise:
    """Uniform in the open interval (0, 1): one of the 2²³ midpoints, float32, `(*lead, rows, columns)`.

    >>> whole = uniform(7, (2,), torch.arange(3), torch.arange(5))
    >>> bool((whole[:, 1:, 4:] == uniform(7, (2,), torch.arange(1, 3), torch.arange(4, 5))).all())
    True
    """
    found = _native(seed, lead, rows, columns, -1.0)
    if found is not None:
        return found
    return ((_bits(seed, lead, rows, columns) >> 9) & 0x7FFFFF).to(torch.float32).add_(0.5).mul_(2.0**-23)


def keep(seed: Seed, lead: Sequence[int], rows: Rows, columns: Columns, rate: float) -> Noise:
    """What dropout multiplies with: 0 with probability `rate`, else 1 / (1 - rate).

    >>> keep(7, (), torch.arange(1), torch.arange(4), 0.0)
    tensor([[1., 1., 1., 1.]])
    """
    if rate >= 1:
        return torch.zeros(*lead, len(rows), len(columns), device=rows.device)
    found = _native(seed, lead, rows, columns, rate)
    if found is not None:
        return found
    return (uniform(seed, lead, rows, columns) >= rate).to(torch.float32).mul_(1 / (1 - rate))


def gumbel(seed: Seed, lead: Sequence[int], rows: Rows, columns: Columns) -> Noise:
    r"""Standard Gumbel noise, $-\log(-\log u)$ (Gumbel 1954), finite everywhere: between -2.9 and 16.7."""
    return -(-uniform(seed, lead, rows, columns).log()).log()


def _bits(seed: Seed, lead: Sequence[int], rows: Rows, columns: Columns) -> Int[Tensor, "*lead L S"]:
    """32 bits for each place."""
    first, second = _row_keys(seed, lead, rows)
    return _mix(_mix(columns.to(torch.int32) ^ first[..., None]) + second[..., None])


def _row_keys(seed: Seed, lead: Sequence[int], rows: Rows) -> tuple[Int[Tensor, "*lead L"], Int[Tensor, "*lead L"]]:
    """Two words for each row. Two rows share their noise only if both agree: once in 2⁶⁴ pairs."""
    whole = torch.as_tensor(seed, dtype=torch.int64, device=rows.device)
    low, high = whole.to(torch.int32), (whole >> 32).to(torch.int32)
    start = torch.arange(prod(lead), dtype=torch.int32, device=rows.device).reshape(*lead, 1)
    row = rows.to(torch.int32)
    first = _mix(_mix(_mix(low) ^ start) ^ row)
    second = _mix(_mix(_mix(high ^ _mix(low + GOLDEN)) + start) + row)
    return first, second


def _mix(word: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """lowbias32 on int32: products wrap, and the mask makes the arithmetic shift a logical one."""
    word = (word >> 16).bitwise_and_(0xFFFF).bitwise_xor_(word).mul_(0x7FEB352D)
    word = (word >> 15).bitwise_and_(0x1FFFF).bitwise_xor_(word).mul_(-0x7B935975)
    return (word >> 16).bitwise_and_(0xFFFF).bitwise_xor_(word)


def _native(seed: Seed, lead: Sequence[int], rows: Rows, columns: Columns, rate: float) -> Noise | None:
    """The same by our own loop (noise.cpp), or None where torch has to. A rate below 0: uniform noise."""
    if len(rows) * len(columns) == 0 or not gate.reachable(rows, columns):
        return None
    size = prod(lead) * len(rows) * len(columns)
    library = native.library(build=size >= WORTH_COMPILING)
    if library is None:
        return None
    number, pointer = native.SIZE, native.POINTER
    kinds = (
        number,
        number,
        number,
        number,
        pointer,
        number,
        pointer,
        ctypes.c_float,
        ctypes.c_float,
        pointer,
    )
    run = library.function("regard_noise", *kinds)
    rows, columns = gate.packed(rows.to(torch.int64)), gate.packed(columns.to(torch.int64))
    noise = torch.empty(*lead, len(rows), len(columns), dtype=torch.float32, device=rows.device)
    table = (prod(lead), len(rows), gate.address(rows), len(columns), gate.address(columns))
    run(torch.get_num_threads(), int(seed), *table, rate, 1 / (1 - rate), gate.address(noise))
    return noise
