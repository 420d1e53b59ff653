"""Attention as a layer: projections to heads, any mechanism, an explicit memory."""

from typing import Any, Literal

import torch
from torch import nn

from regard.algebra.aggregates import Aggregate
from regard.algebra.biases import Bias
from regard.algebra.catalog import Sizes
from regard.algebra.masks import Full, Mask, Window
from regard.algebra.masks.base import as_mask, differs_by_head, ensure_head_axis
from regard.algebra.masks.lengths import resolve_layer_lengths
from regard.algebra.normalizers import Normalizer
from regard.algebra.scores import Score
from regard.algebra.shapes import Float, Tensor, describe
from regard.compute.attend import AttentionResult
from regard.compute.checks import check_queries
from regard.errors import wrong, wrong_kind
from regard.layers.conversion import from_multihead, to_multihead
from regard.layers.mechanism import Mechanism, choose_mask
from regard.layers.memory import FULL, Memory, check_sequence, combine_masks, zero_harmful_padding, zero_hidden
from regard.layers.positions import Rotary, Start, check_start
from regard.layers.projections import HeadProjections, PackedProjections, Projections

Role = Literal["self", "cross"]  # keys from the sequence of the queries, or from another one
Sequences = Float[Tensor, "*lead query size"]
Source = Float[Tensor, "*lead key source"] | Memory | None
Content = Float[Tensor, "*lead key content"] | None


class Attention(nn.Module):
    r"""Multi-head attention over the keys and values of a memory.

    $$ o_i = W_o [h_1; \dots; h_H], \qquad h = \mathrm{mechanism}(W_q x_i, W_k s, W_v s) $$

    with $x$ = the queries, $s$ = the source (none: the queries), and $W$ = `projections`: given
    as parts, or made for `size`, `heads`, `groups` and the width of the `source`. Vaswani et al. 2017, §3.2.2, with
    any score, bias, normalizer and aggregate. A query that sees no key gives the last projection of zeros. `role` is
    set by the module that uses the layer, for those who record a model; it changes no number. Parts are given as
    objects, by their names in the catalog, or together as a `mechanism`.

    >>> layer = Attention(6, heads=2)
    >>> x = torch.randn(5, 7, 6)
    >>> layer(x).shape, layer(x, torch.randn(5, 4, 6)).shape
    (torch.Size([5, 7, 6]), torch.Size([5, 7, 6]))
    >>> output, weights = Attention(6, heads=2, score="additive", normalizer="sparsemax").attend(x, mask="causal")
    """

    role: Role | None = None

    def __init__(  # noqa: PLR0913  # the parts of the algebra, each with its default
        self,
        size: int | HeadProjections,
        heads: int | None = None,
        *,
        groups: int | None = None,
        source: int | None = None,
        score: Score | str | None = None,
        bias: Bias | str | None = None,
        normalizer: Normalizer | str | None = None,
        aggregate: Aggregate | str | None = None,
        mechanism: Mechanism | None = None,
        rotary: Rotary | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.projections = _build_projections(size, heads, groups, source)
        parts = {"score": score, "bias": bias, "normalizer": normalizer, "aggregate": aggregate}
        self.mechanism = _choose_mechanism(mechanism, parts, size, self.projections)
        if not isinstance(rotary, nn.Module | None):
            fix = "write rotary=Rotary(width of a head), with its scaling=… inside"
            raise wrong_kind("rotary", describe(rotary), "a Rotary", fix)
        self.rotary = rotary
        self.dropout = dropout

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "Attention":
        """Return a layer with the numbers of that module; its inputs have the batch first."""
        return cls(from_multihead(module), dropout=module.dropout).train(module.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """Return a module of torch with the same numbers, batch first; raise if torch has no such module."""
        parts = self.mechanism.list_parts() + ([] if self.rotary is None else ["Rotary"])
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
        start: Start = 0,
    ) -> Memory:
        """Return keys from the source and values from the content (None: from the source).

        `mask` allows the positions that are not padding; the others may hold anything, even NaN. `start` is the
        position of the first one, if positions are rotary, or a tensor with that of each sequence: a cached step starts
        at `memory.next_position`.
        """
        keys = zero_harmful_padding(source, mask)
        values = keys if content is None or content is source else zero_harmful_padding(content, mask)
        return self._build_memory(*self.projections.project_keys_values(keys, values), mask, start)

    def attend(
        self,
        query: Sequences,
        source: Source = None,
        content: Content = None,
        *,
        mask: Mask | str | None = FULL,
        mechanism: Mechanism | None = None,
    ) -> AttentionResult:
        """Attend to a source: output `(*lead, query, size)`, weights `(*lead, heads, query, key)`.

        Keys and values come from the queries themselves (self-attention), from a `source` (cross-attention), from a
        source and a `content` (key–value attention), or from a memory that was projected before. `mask` has the lead
        axes of the batch, and heads share it; or those of the batch and then one of heads. `mechanism` replaces the
        layer's in this call. The last query has the position of the last key.
        """
        check_sequence("query", query)
        mask = self._choose_mask(mask, query)
        if source is None and content is None:
            return self.attend_self(zero_hidden(query, mask), mask=mask, mechanism=mechanism)[0]
        memory = self._as_memory(source, content, mask)
        check_queries(query, tuple(memory.key.shape[:-3]))
        heads = self.projections.project_queries(query)
        rotated = self._rotate(heads, memory.length - query.shape[-2], _find_last_positions(memory, query.shape[-2]))
        return self.attend_heads(rotated, memory, mask=mask, mechanism=mechanism)

    def forward(
        self, query: Sequences, source: Source = None, content: Content = None, *, mask: Mask | str | None = FULL
    ) -> Float[Tensor, "*lead query out"]:
        """Return the output of `attend`: `layer(x)`, `layer(x, source)`, `layer(query, key, value)` or a memory."""
        return self.attend(query, source, content, mask=mask).output

    def attend_self(
        self,
        sequence: Sequences,
        *,
        before: Memory | None = None,
        mask: Mask | str | None = FULL,
        real: Mask = FULL,
        mechanism: Mechanism | None = None,
    ) -> tuple[AttentionResult, Memory]:
        """Attend from a sequence to itself and what came `before`; return the memory of both, for what comes next.

        The same numbers as `remember`, `append` and `attend`, in one matrix product. `real` allows the positions of
        the sequence that are not padding; the outputs of the others are undefined.
        """
        mask = self._choose_mask(mask, sequence)
        start: Start = 0 if before is None else self._find_start(before, mask)
        query, key, value = self.projections.project_self(zero_harmful_padding(sequence, real))
        memory = self._build_memory(key, value, real, start)
        memory = memory if before is None else before.append(memory)
        return self.attend_heads(self._rotate(query, start), memory, mask=mask, mechanism=mechanism), memory

    def attend_heads(
        self,
        query: Float[Tensor, "*lead heads query width"],
        memory: Memory,
        *,
        mask: Mask = FULL,
        mechanism: Mechanism | None = None,
    ) -> AttentionResult:
        """Attend with queries that are projected and rotated already."""
        mechanism, batch = self.mechanism if mechanism is None else mechanism, query.dim() - 3
        mask = ensure_head_axis(combine_masks(memory.mask, mask), batch)
        dropout = self.dropout if self.training else 0.0
        alike = mechanism.uniform and not differs_by_head(mask, batch)
        by = _attend_by_group if self.projections.grouped and alike else _attend_by_head
        attended = by(mechanism, self.projections, query, memory, mask, dropout)
        return attended._replace(output=self.projections.merge(attended.output))

    def _choose_mask(self, mask: Mask | str | None, query: Tensor) -> Mask:
        """Return the mask of this name, or the one that is given, with lengths resolved to queries or heads."""
        mask = choose_mask(mask)
        if type(mask) is Full:
            return mask
        return resolve_layer_lengths(as_mask(mask), query.dim() - 2, query.shape[-2], self.projections.heads)

    def _as_memory(self, source: Tensor | Memory | None, content: Tensor | None, mask: Mask) -> Memory:
        """Return the memory that is given, or that of the source, of which the mask hides the padding."""
        if content is not None and not isinstance(source, Tensor):
            fix = "write layer(query, key, value)"
            raise wrong("content", describe(content), "a tensor, the source of the keys, beside it", fix)
        if isinstance(source, Memory):
            return source
        if not isinstance(source, Tensor):
            fix = "write layer(x), layer(x, source) or layer(x, layer.remember(source))"
            raise wrong_kind("source", describe(source), "a tensor, or a Memory of projected keys and values", fix)
        check_sequence("source", source)
        keys = zero_hidden(source, mask)
        return self.remember(keys, keys if content is None or content is source else zero_hidden(content, mask))

    def _find_start(self, before: Memory, mask: Mask) -> Start:
        """Return the position of what follows `before`.

        Raise if distances are counted in keys, by a window or a bias, while some sequences are padded.
        """
        bias = self.mechanism.bias
        by_bias = bias is not None and not bias.columnwise
        counts = by_bias or any(isinstance(part, Window) for part in mask.leaves())
        if type(before.mask) is not Full and counts and not before.ends_unpadded:
            got = f"padding at the end of some sequences beside {type(bias).__name__ if by_bias else 'a Window'}"
            raise wrong("before", got, "none, because distances are counted in keys", "pad sequences on the left")
        return before.length if self.rotary is None else before.next_position

    def _build_memory(self, key: Tensor, value: Tensor, mask: Mask, start: Start) -> Memory:
        positions = None
        if self.rotary is not None and (isinstance(start, Tensor) or type(mask) is not Full):
            first = start[..., None] if isinstance(start, Tensor) else start
            positions = first + torch.arange(key.shape[-2], device=key.device)
        key = self._rotate(key, start)
        if self.projections.grouped:  # a kernel can then take batch and groups as one axis without a copy
            key, value = key.contiguous(), value.contiguous()
        return Memory(key, value, mask, positions)

    def _rotate(self, heads: Tensor, start: Start, positions: Tensor | None = None) -> Tensor:
        if self.rotary is None:
            return heads
        if isinstance(start, Tensor) and start.dim():
            check_start(start, tuple(heads.shape[:-3]))
            start = start.unsqueeze(-1)  # heads share it
        own = positions.unsqueeze(-2) if positions is not None and positions.dim() > 1 else positions
        rotated: Tensor = self.rotary(heads, start=start, positions=own)
        return rotated


def _find_last_positions(memory: Memory, queries: int) -> Tensor | None:
    """Return the positions of the last keys, which are those of the queries; None if they are the keys' indices."""
    if memory.positions is None or not memory.length:
        return None
    index = torch.arange(memory.length - queries, memory.length, device=memory.positions.device)
    return memory.positions[..., index.clamp_min(0)] + index.clamp_max(0)


def _build_projections(
    size: int | HeadProjections, heads: int | None, groups: int | None, source: int | None
) -> HeadProjections:
    if isinstance(size, HeadProjections):
        for name, given in (("heads", heads), ("groups", groups), ("source", source)):
            if given is not None:
                raise wrong(name, given, "none beside built projections", "give it to the projections")
        return size
    heads = 1 if heads is None else heads
    if source is None:
        return PackedProjections(size, heads=heads, groups=groups)
    return Projections.linear(size, heads=heads, groups=groups, source=source)


def _choose_mechanism(
    mechanism: Mechanism | None, parts: dict[str, Any], size: int | HeadProjections, projections: HeadProjections
) -> Mechanism:
    """Return the mechanism that is given, or one of these parts, which may be named."""
    given = [name for name, part in parts.items() if part is not None]
    if mechanism is None:
        width = size // projections.heads if isinstance(size, int) else None
        lead = (projections.heads,)
        return Mechanism(**parts, sizes=None if width is None else Sizes(width, width, width, lead, projected=True))
    if not isinstance(mechanism, Mechanism):
        fix = "write score=…, or mechanism=Mechanism(score)"
        raise wrong_kind("mechanism", describe(mechanism), "a Mechanism", fix)
    if given:
        raise wrong(given[0], describe(parts[given[0]]), "none beside a mechanism", "give it to the mechanism")
    return mechanism


def _attend_by_head(
    mechanism: Mechanism, parts: HeadProjections, query: Tensor, memory: Memory, mask: Mask, dropout: float
) -> AttentionResult:
    """Attend with every head for itself; keys and values that heads share in groups are repeated."""
    key, value = memory.key, memory.value
    if parts.grouped:
        key, value = (tensor.repeat_interleave(parts.heads // parts.groups, dim=-3) for tensor in (key, value))
    return mechanism.attend(query, key, value, mask=mask, dropout=dropout)


def _attend_by_group(
    mechanism: Mechanism, parts: HeadProjections, query: Tensor, memory: Memory, mask: Mask, dropout: float
) -> AttentionResult:
    """Attend with the heads of a group on an axis that its keys broadcast over: nothing is copied."""
    query, mask = query.unflatten(-3, (parts.groups, -1)), mask.add_head_axis()
    key, value = memory.key.unsqueeze(-3), memory.value.unsqueeze(-3)
    attended = mechanism.attend(query, key, value, mask=mask, dropout=dropout)
    return AttentionResult(attended.output.flatten(-4, -3), attended.weights.merge_heads())
