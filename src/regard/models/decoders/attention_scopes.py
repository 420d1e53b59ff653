"""Which positions of the source a recurrent decoder attends to: all, those along the diagonal, or predicted ones."""

from abc import ABC, abstractmethod

from torch import nn

from regard.algebra.masks import CenteredWindow
from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.attend import AttentionResult
from regard.layers.attention import Attention
from regard.layers.local import LocalAttention
from regard.layers.memory import Memory
from regard.models.config import AttentionConfig


class AttentionScope(nn.Module, ABC):
    """Restricts the positions of the source that a query attends to."""

    attention: Attention

    @abstractmethod
    def attend(
        self, query: Float[Tensor, "batch query size"], memory: Memory, steps: Int[Tensor, " query"]
    ) -> AttentionResult:
        """Attend with the queries of these steps."""


class GlobalScope(AttentionScope):
    """Attends to all of the source: Luong's *global* attention, and Bahdanau's."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention

    def attend(
        self, query: Float[Tensor, "batch query size"], memory: Memory, steps: Int[Tensor, " query"]
    ) -> AttentionResult:
        return self.attention.attend(query, memory)


class MonotonicScope(AttentionScope):
    """Attends at step t to the positions t − radius … t + radius: *local-m*, for sources and targets of one order.

    Luong et al. 2015, §3.2 (*monotonic alignment*).
    """

    def __init__(self, attention: Attention, *, radius: int) -> None:
        super().__init__()
        self.attention, self.radius = attention, radius

    def attend(
        self, query: Float[Tensor, "batch query size"], memory: Memory, steps: Int[Tensor, " query"]
    ) -> AttentionResult:
        return self.attention.attend(query, memory, mask=CenteredWindow(steps, self.radius))


class PredictiveScope(AttentionScope):
    """Attends around a position that the query predicts, by a Gaussian: *local-p*. Luong et al. 2015, eq. 9-10."""

    def __init__(self, attention: Attention, *, radius: int, size: int) -> None:
        super().__init__()
        self.local = LocalAttention(attention, radius=radius, size=size)

    @property
    def attention(self) -> Attention:  # type: ignore[override]
        """The attention of the local layer."""
        return self.local.attention

    def attend(
        self, query: Float[Tensor, "batch query size"], memory: Memory, steps: Int[Tensor, " query"]
    ) -> AttentionResult:
        return self.local.attend(query, memory)


def build_scope(config: AttentionConfig, attention: Attention, *, size: int) -> AttentionScope:
    """Build the scope of a configuration for queries of this size."""
    if config.scope == "local-m":
        return MonotonicScope(attention, radius=config.radius)
    if config.scope == "local-p":
        return PredictiveScope(attention, radius=config.radius, size=size)
    return GlobalScope(attention)
