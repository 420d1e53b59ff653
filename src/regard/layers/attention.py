"""Attention as a layer: projections to heads, any mechanism, an explicit memory."""

from dataclasses import dataclass, replace

import torch
from torch import nn

from regard.aggregates import Reading, Soft
from regard.biases import Bias
from regard.errors import wrong
from regard.layers.convert import from_multihead, to_multihead
from regard.layers.positions import Rotary
from regard.layers.projections import Heads, Packed, Projections
from regard.masks import Full, Mask, Table, as_mask
from regard.normalizers import Normalizer, Softmax
from regard.operator import Attended, attend
from regard.scores import ScaledDot, Score
from regard.shapes import Float, Int, Keys, Queries, Tensor, Values, WideKeys

FULL = Full()


class Mechanism(nn.Module):
    r"""How queries read: all of the algebra but the mask, which belongs to the call.

    $$ \mathrm{aggregate}(\mathrm{normalizer}(\mathrm{score}(q, k) + \mathrm{bias}, \cdot), v) $$

    What is left out is the scaled dot product, no bias, softmax, and the soft reading. A mechanism is not changed;
    `replaced` makes another one that shares the other parts.

    >>> from regard.normalizers import Sparsemax
    >>> type(Mechanism(normalizer=Sparsemax()).score).__name__
    'ScaledDot'
    """

    def __init__(
        self,
        score: Score | None = None,
        *,
        bias: Bias | None = None,
        normalizer: Normalizer | None = None,
        aggregate: Reading | None = None,
    ) -> None:
        super().__init__()
        self.score = ScaledDot() if score is None else score
        self.bias = bias
        self.normalizer = Softmax() if normalizer is None else normalizer
        self.aggregate = Soft() if aggregate is None else aggregate

    def replaced(
        self,
        *,
        score: Score | None = None,
        bias: Bias | None = None,
        normalizer: Normalizer | None = None,
        aggregate: Reading | None = None,
    ) -> "Mechanism":
        """This mechanism with other parts where they are given, for example what one call predicted."""
        return Mechanism(
            score or self.score,
            bias=bias or self.bias,
            normalizer=normalizer or self.normalizer,
            aggregate=aggregate or self.aggregate,
        )

    def names(self) -> list[str]:
        """Its parts in words, for messages."""
        parts = (self.score, self.bias, self.normalizer, self.aggregate)
        names = [type(part).__name__ for part in parts if part is not None]
        temperature = self.normalizer.temperature if isinstance(self.normalizer, Softmax) else 1.0
        plain = not isinstance(temperature, Tensor) and temperature == 1.0
        return names if plain else [f"{n} at temperature {temperature}" if n == "Softmax" else n for n in names]

    def attend(
        self, query: Queries, key: WideKeys, value: Values, *, mask: Mask = FULL, dropout: float = 0.0
    ) -> Attended:
        """Read these values under this mask."""
        return attend(
            query,
            key,
            value,
            score=self.score,
            bias=self.bias,
            mask=mask,
            normalizer=self.normalizer,
            aggregate=self.aggregate,
            dropout=dropout,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Keys and values that are ready to be read, and which of them are real.

    Bahdanau's projected keys, the cache of cross-attention and the cache of a decoder that reads its own past are
    this one thing. It is passed, never stashed. `mask` is the same for every query (padding); what differs from
    query to query is given with the query.

    >>> step = Memory(torch.ones(2, 1, 3), torch.ones(2, 1, 5))
    >>> step.append(step).length
    2
    """

    key: Keys
    value: Values
    mask: Mask = FULL

    def __post_init__(self) -> None:
        if not as_mask(self.mask).columnwise:
            expected, fix = "a mask that is the same for every query", "give it with the query"
            raise wrong("memory.mask", type(self.mask).__name__, expected, fix)

    @property
    def length(self) -> int:
        """How many keys."""
        return self.key.shape[-2]

    def append(self, later: "Memory") -> "Memory":
        """This memory, then the later one."""
        if isinstance(self.mask, Full) and isinstance(later.mask, Full):
            mask: Mask = FULL
        else:
            mask = Table(_joined(self.mask, self.length, later.mask, later.length, self.key.device))
        key, value = torch.cat([self.key, later.key], dim=-2), torch.cat([self.value, later.value], dim=-2)
        return Memory(key, value, mask)

    def select(self, index: Int[Tensor, " chosen"]) -> "Memory":
        """Some samples of the batch, in another order, some perhaps twice: what beam search does at each step."""
        mask = self.mask
        if not isinstance(mask, Full):
            cells = mask.table(1, self.length, device=self.key.device)
            mask = Table(cells[index] if cells.dim() > 2 else cells)
        return Memory(self.key[index], self.value[index], mask)

    def plus(self, features: Float[Tensor, "*#lead key dim"]) -> "Memory":
        """The same with something added to its keys (location features, coverage)."""
        return replace(self, key=self.key + features)


class Attention(nn.Module):
    r"""Heads that read a memory.

    $$ o_i = W_o [h_1; \dots; h_H], \qquad h = \mathrm{mechanism}(W_q x_i, W_k s, W_v s) $$

    with $x$ = the queries, $s$ = the source that `remember` turned into a memory, and $W$ = `projections`: given
    as parts, or made for `size`, `heads`, `groups` and the width of the `source`. Vaswani et al. 2017, §3.2.2, with
    any score, bias, normalizer and reading. A query that sees nothing gives what the last projection makes of zeros.

    >>> layer = Attention(6, heads=2)
    >>> x = torch.randn(5, 7, 6)
    >>> layer(x, layer.remember(x)).shape
    torch.Size([5, 7, 6])
    """

    def __init__(
        self,
        size: int | Heads,
        *,
        heads: int | None = None,
        groups: int | None = None,
        source: int | None = None,
        mechanism: Mechanism | None = None,
        rotary: Rotary | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.projections = _projections(size, heads, groups, source)
        self.mechanism = Mechanism() if mechanism is None else mechanism
        self.rotary = rotary
        self.dropout = dropout

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "Attention":
        """The same numbers as that module, which is always given its batch first here."""
        return cls(from_multihead(module), dropout=module.dropout).train(module.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """The same numbers as a module of torch, batch first; raise where torch has no such module."""
        parts = self.mechanism.names() + ([] if self.rotary is None else ["Rotary"])
        if parts != ["ScaledDot", "Softmax", "Soft"]:
            expected, fix = "scaled dot product and softmax, all that torch's module has", "keep it in regard"
            raise wrong("mechanism", ", ".join(parts), expected, fix)
        return to_multihead(self.projections, dropout=self.dropout).train(self.training)

    def remember(
        self,
        source: Float[Tensor, "*lead key source"],
        content: Float[Tensor, "*lead key content"] | None = None,
        *,
        mask: Mask = FULL,
        start: int = 0,
    ) -> Memory:
        """Keys from the source and values from the content (the source itself, where none is given).

        `mask` says which positions are real; the others may hold anything, NaN too. `start` is the position of the
        first one, where positions are rotary: a cached step starts at `memory.length`.
        """
        same = content is None or content is source
        source = cleaned(source, mask)
        values = source if same or content is None else cleaned(content, mask)
        key, value = self.projections.memory(source, values)
        return Memory(self._turned(key, start), value, mask)

    def attend(
        self,
        query: Float[Tensor, "*lead query size"],
        memory: Memory,
        *,
        mask: Mask = FULL,
        mechanism: Mechanism | None = None,
    ) -> Attended:
        """Read the memory: output `(*lead, query, size)`, weights `(*lead, heads, query, key)`.

        `mask` has the lead axes of the batch; heads share it. `mechanism` takes the place of the layer's own in this
        call. The last query sits on the last key.
        """
        heads = self.projections.queries(query)
        return self._read(self._turned(heads, memory.length - query.shape[-2]), memory, mask, mechanism)

    def forward(
        self, query: Float[Tensor, "*lead query size"], memory: Memory, *, mask: Mask = FULL
    ) -> Float[Tensor, "*lead query out"]:
        return self.attend(query, memory, mask=mask).output

    def within(
        self,
        sequence: Float[Tensor, "*lead query size"],
        *,
        before: Memory | None = None,
        mask: Mask = FULL,
        real: Mask = FULL,
    ) -> tuple[Attended, Memory]:
        """A sequence that reads itself, and what came `before`; with the memory of both, for what comes next.

        The same numbers as `remember`, `append` and `attend`, in one matrix product. `real` says which positions of
        the sequence are no padding; the others ask with zeros.
        """
        start = 0 if before is None else before.length
        query, key, value = self.projections.together(cleaned(sequence, real))
        memory = Memory(self._turned(key, start), value, real)
        memory = memory if before is None else before.append(memory)
        return self._read(self._turned(query, start), memory, mask, None), memory

    def _read(self, query: Tensor, memory: Memory, mask: Mask, mechanism: Mechanism | None) -> Attended:
        mechanism = self.mechanism if mechanism is None else mechanism
        attended = mechanism.attend(
            query,
            self.projections.shared(memory.key),
            self.projections.shared(memory.value),
            mask=both(memory.mask, mask).over_heads(),
            dropout=self.dropout if self.training else 0.0,
        )
        return attended._replace(output=self.projections.merge(attended.output))

    def _turned(self, heads: Tensor, start: int) -> Tensor:
        if self.rotary is None:
            return heads
        turned: Tensor = self.rotary(heads, start=start)
        return turned


def cleaned(source: Float[Tensor, "*lead key width"], mask: Mask) -> Float[Tensor, "*lead key width"]:
    """The source with zeros where the mask says that nothing is: a matrix times NaN is NaN, and so is its gradient."""
    if isinstance(mask, Full):
        return source
    keys = source.shape[-2]
    as_mask(mask).check(tuple(source.shape[:-2]), 1, keys)
    real = mask.table(1, keys, device=source.device).squeeze(-2)
    return torch.where(real[..., None], source, 0.0)


def both(first: Mask, second: Mask) -> Mask:
    """Allowed by both, with nothing to compute where one allows everything."""
    if isinstance(as_mask(second), Full):
        return first
    return second if isinstance(first, Full) else first & second


def _joined(first: Mask, own: int, second: Mask, later: int, device: torch.device) -> Tensor:
    left, right = first.table(1, own, device=device), second.table(1, later, device=device)
    lead = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    return torch.cat([left.expand(*lead, 1, own), right.expand(*lead, 1, later)], dim=-1)


def _projections(size: int | Heads, heads: int | None, groups: int | None, source: int | None) -> Heads:
    if isinstance(size, Heads):
        for name, given in (("heads", heads), ("groups", groups), ("source", source)):
            if given is not None:
                raise wrong(name, given, "none beside built projections", "give it to the projections")
        return size
    heads = 1 if heads is None else heads
    if source is None:
        return Packed(size, heads=heads, groups=groups)
    return Projections.linear(size, heads=heads, groups=groups, source=source)
