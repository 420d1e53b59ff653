"""Several attentions to an external memory, each of which changes the next query."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import nn

from regard.algebra.masks import Mask
from regard.algebra.scores import Dot
from regard.algebra.shapes import Float, Tensor
from regard.compute.attend import AttentionResult
from regard.errors import wrong
from regard.layers.mechanism import Mechanism
from regard.layers.memory import FULL, Memory, check_memory, combine_masks
from regard.layers.projections import build_linear


class HopsOutput(NamedTuple):
    """The last query, which contains the outputs of all hops, and the attention of each hop."""

    output: Float[Tensor, "*lead query size"]
    hops: tuple[AttentionResult, ...]


class Hops(nn.Module):
    r"""A key-value memory with several hops.

    $$ o_j = \sum_i \mathrm{softmax}(q_j^\top k_i)\, v_i, \qquad q_{j+1} = R_j (q_j + o_j) $$

    with $q_1$ = `query`, $k, v$ = the memory and $R$ = `updates`, one for each hop. Miller et al. 2016, eq. 1-3. With
    `nn.Identity()` as each update this is Sukhbaatar et al. 2015, eq. 1-4. One memory serves all hops, or each hop has
    its own (*adjacent* weights). An empty memory gives zero.

    >>> hops = Hops.linear(3, hops=2)
    >>> len(hops(torch.ones(5, 1, 3), Memory(torch.ones(5, 7, 3), torch.ones(5, 7, 3))).hops)
    2
    """

    def __init__(self, updates: Sequence[nn.Module], *, mechanism: Mechanism | None = None) -> None:
        super().__init__()
        if not updates:
            raise wrong("updates", "none", "one for each hop", "write Hops.linear(size, hops=3)")
        self.updates = nn.ModuleList(updates)
        self.mechanism = Mechanism(Dot()) if mechanism is None else mechanism

    @classmethod
    def linear(cls, size: int, *, hops: int = 3, mechanism: Mechanism | None = None) -> "Hops":
        """Build hops with a square matrix each."""
        return cls([build_linear(size, size, bias=False) for _ in range(hops)], mechanism=mechanism)

    def forward(
        self, query: Float[Tensor, "*lead query size"], memory: Memory | Sequence[Memory], *, mask: Mask = FULL
    ) -> HopsOutput:
        for own in [memory] if isinstance(memory, Memory | Tensor) else memory:
            check_memory(own)
        memories = [memory] * len(self.updates) if isinstance(memory, Memory) else memory
        if len(memories) != len(self.updates):
            fix = "give one memory for all hops, or one for each"
            raise wrong("memory", f"{len(memories)} memories", f"one for each of {len(self.updates)} hops", fix)
        hops: list[AttentionResult] = []
        for update, own in zip(self.updates, memories, strict=True):
            hops.append(self.mechanism.attend(query, own.key, own.value, mask=combine_masks(own.mask, mask)))
            query = update(query + hops[-1].output)
        return HopsOutput(query, tuple(hops))
