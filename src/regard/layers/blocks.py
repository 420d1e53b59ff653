"""The blocks that stacks are made of: feed-forward, residual and norm, encoder, decoder."""

from abc import abstractmethod
from typing import NamedTuple

from torch import nn

from regard.algebra.masks import Causal, Mask
from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.dropout import add_dropout, dropout, relu_dropout
from regard.compute.weights import Weights
from regard.layers.attention import Attention
from regard.layers.memory import FULL, Memory, zero_harmful_padding
from regard.layers.projections import build_linear

Stream = Float[Tensor, "*lead length size"]
CAUSAL = Causal()


class FeedForward(nn.Module):
    r"""The same small network at every position.

    $$ \mathrm{FFN}(x) = W_2\, \phi(W_1 x + b_1) + b_2 $$

    with $W_1$ = `widen`, $W_2$ = `narrow` and $\phi$ = `activation`, ReLU where none is given. Vaswani et al. 2017,
    eq. 2.

    >>> FeedForward(3, 12)(torch.ones(2, 5, 3)).shape
    torch.Size([2, 5, 3])
    """

    def __init__(self, size: int, hidden: int, *, activation: nn.Module | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.widen, self.narrow = build_linear(size, hidden), build_linear(hidden, size)
        self.activation = nn.ReLU() if activation is None else activation
        self.dropout = dropout

    def forward(self, stream: Stream) -> Stream:
        rate, hidden = self.dropout if self.training else 0.0, self.widen(stream)
        if isinstance(self.activation, nn.ReLU):
            hidden = relu_dropout(hidden, rate)  # the same in one pass
        else:
            hidden = dropout(self.activation(hidden), rate)
        out: Tensor = self.narrow(hidden)
        return out


class Residual(nn.Module):
    """What stands around a part: `prepare` it, and `combine` it. The part itself is the caller's."""

    def __init__(self, size: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = dropout

    def add(self, stream: Stream, change: Stream) -> Stream:
        """Both together, with dropout on the change while training."""
        return add_dropout(stream, change, self.dropout if self.training else 0.0)

    @abstractmethod
    def prepare(self, stream: Stream) -> Stream:
        """What the part is given."""

    @abstractmethod
    def combine(self, stream: Stream, change: Stream) -> Stream:
        """The stream after the part's change to it."""


class PreNorm(Residual):
    r"""Norm first: $x + f(\mathrm{norm}(x))$, which trains without a warm-up (Xiong et al. 2020, fig. 1b).

    >>> around = PreNorm(3)
    >>> around.combine(torch.ones(1, 3), torch.zeros(1, 3))
    tensor([[1., 1., 1.]])
    """

    def prepare(self, stream: Stream) -> Stream:
        out: Tensor = self.norm(stream)
        return out

    def combine(self, stream: Stream, change: Stream) -> Stream:
        return self.add(stream, change)


class PostNorm(Residual):
    r"""Norm last: $\mathrm{norm}(x + f(x))$, as in Vaswani et al. 2017, §3.1."""

    def prepare(self, stream: Stream) -> Stream:
        return stream

    def combine(self, stream: Stream, change: Stream) -> Stream:
        out: Tensor = self.norm(self.add(stream, change))
        return out


class EncoderBlock(nn.Module):
    """Self-attention and feed-forward, each with its residual and norm. Vaswani et al. 2017, §3.1.

    >>> block = EncoderBlock(6, attention=Attention(6, heads=2), feed_forward=FeedForward(6, 24))
    >>> block(torch.randn(5, 7, 6)).shape
    torch.Size([5, 7, 6])
    """

    def __init__(
        self,
        size: int,
        *,
        attention: Attention,
        feed_forward: nn.Module,
        residual: type[Residual] = PreNorm,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.around_attention, self.around_forward = (residual(size, dropout=dropout) for _ in range(2))

    def forward(self, stream: Stream, *, mask: Mask = FULL, real: Mask = FULL) -> Stream:
        """`real` says which positions are no padding; `mask` which of them may see which."""
        stream = zero_harmful_padding(stream, real)
        attended, _ = self.attention.attend_self(self.around_attention.prepare(stream), mask=mask, real=real)
        stream = self.around_attention.combine(stream, attended.output)
        return self.around_forward.combine(stream, self.feed_forward(self.around_forward.prepare(stream)))


class DecoderBlockState(NamedTuple):
    """What a decoder block remembers: its own past (None: nothing yet) and the source."""

    own: Memory | None
    source: Memory


class DecoderBlockOutput(NamedTuple):
    """The stream, the state for what comes next, and where the block looked."""

    output: Float[Tensor, "*lead length size"]
    state: DecoderBlockState
    own: Weights
    source: Weights


class DecoderBlock(nn.Module):
    """Causal self-attention, attention to a source, and feed-forward. Vaswani et al. 2017, §3.1.

    All positions at once and one position at a time are the same call: what is given is appended to the state.

    >>> own, source = Attention(6, heads=2), Attention(6, heads=3, source=4)
    >>> block = DecoderBlock(6, attention=own, source=source, feed_forward=FeedForward(6, 24))
    >>> block(torch.randn(5, 7, 6), block.begin(torch.randn(5, 11, 4))).output.shape
    torch.Size([5, 7, 6])
    """

    def __init__(
        self,
        size: int,
        *,
        attention: Attention,
        source: Attention,
        feed_forward: nn.Module,
        residual: type[Residual] = PreNorm,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention, self.source, self.feed_forward = attention, source, feed_forward
        self.around_attention, self.around_source, self.around_forward = (
            residual(size, dropout=dropout) for _ in range(3)
        )

    def begin(self, source: Float[Tensor, "*lead key source"], *, mask: Mask = FULL) -> DecoderBlockState:
        """Nothing said yet, and the source projected once."""
        return DecoderBlockState(None, self.source.remember(source, mask=mask))

    def forward(self, stream: Stream, state: DecoderBlockState, *, real: Mask = FULL) -> DecoderBlockOutput:
        """`real` says which of the given positions are no padding."""
        stream = zero_harmful_padding(stream, real)
        asked = self.around_attention.prepare(stream)
        own, memory = self.attention.attend_self(asked, before=state.own, mask=CAUSAL, real=real)
        stream = self.around_attention.combine(stream, own.output)
        source = self.source.attend(self.around_source.prepare(stream), state.source)
        stream = self.around_source.combine(stream, source.output)
        stream = self.around_forward.combine(stream, self.feed_forward(self.around_forward.prepare(stream)))
        return DecoderBlockOutput(stream, DecoderBlockState(memory, state.source), own.weights, source.weights)
