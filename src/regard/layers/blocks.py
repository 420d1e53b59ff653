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
    """A residual connection with its norm around a part, which the caller computes between `prepare` and `combine`."""

    def __init__(self, size: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = dropout

    def add(self, stream: Stream, change: Stream) -> Stream:
        """Add a change to the stream, with dropout on the change while training."""
        return add_dropout(stream, change, self.dropout if self.training else 0.0)

    @abstractmethod
    def prepare(self, stream: Stream) -> Stream:
        """Return the input of the part."""

    @abstractmethod
    def combine(self, stream: Stream, change: Stream) -> Stream:
        """Return the stream after the part's change to it."""


class PreNorm(Residual):
    r"""Norm first: $x + f(\mathrm{norm}(x))$, which trains without a warm-up (Xiong et al. 2020, fig. 1b).

    >>> residual = PreNorm(3)
    >>> residual.combine(torch.ones(1, 3), torch.zeros(1, 3))
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


class Block(nn.Module):
    """What encoder and decoder blocks share: self-attention and feed-forward, each with its residual."""

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
        attention.role = "self"
        self.attention, self.feed_forward = attention, feed_forward
        self.attention_residual, self.forward_residual = (residual(size, dropout=dropout) for _ in range(2))

    def apply_feed_forward(self, stream: Stream) -> Stream:
        """Return the stream after the feed-forward network."""
        change = self.feed_forward(self.forward_residual.prepare(stream))
        return self.forward_residual.combine(stream, change)


class EncoderBlock(Block):
    """Self-attention and feed-forward, each with its residual and norm. Vaswani et al. 2017, §3.1.

    >>> block = EncoderBlock(6, attention=Attention(6, heads=2), feed_forward=FeedForward(6, 24))
    >>> block(torch.randn(5, 7, 6)).shape
    torch.Size([5, 7, 6])
    """

    def forward(self, stream: Stream, *, mask: Mask = FULL, real: Mask = FULL) -> Stream:
        """Return the stream after the block; `real` allows positions that are not padding, `mask` which sees which."""
        stream = zero_harmful_padding(stream, real)
        attended, _ = self.attention.attend_self(self.attention_residual.prepare(stream), mask=mask, real=real)
        stream = self.attention_residual.combine(stream, attended.output)
        return self.apply_feed_forward(stream)


class DecoderBlockState(NamedTuple):
    """The memory of the tokens so far (None: nothing yet) and of the source."""

    own: Memory | None
    source: Memory


class DecoderBlockOutput(NamedTuple):
    """The stream, the state for what comes next, and the weights of both attentions."""

    output: Float[Tensor, "*lead length size"]
    state: DecoderBlockState
    own: Weights
    source: Weights


class DecoderBlock(Block):
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
        super().__init__(size, attention=attention, feed_forward=feed_forward, residual=residual, dropout=dropout)
        source.role = "cross"
        self.source, self.source_residual = source, residual(size, dropout=dropout)

    def begin(self, source: Float[Tensor, "*lead key source"], *, mask: Mask = FULL) -> DecoderBlockState:
        """Return the state before the first position; the source is projected once."""
        return DecoderBlockState(None, self.source.remember(source, mask=mask))

    def forward(self, stream: Stream, state: DecoderBlockState, *, real: Mask = FULL) -> DecoderBlockOutput:
        """Return the stream after the block and the new state; `real` allows positions that are not padding."""
        stream = zero_harmful_padding(stream, real)
        prepared = self.attention_residual.prepare(stream)
        own, memory = self.attention.attend_self(prepared, before=state.own, mask=CAUSAL, real=real)
        stream = self.attention_residual.combine(stream, own.output)
        source = self.source.attend(self.source_residual.prepare(stream), state.source)
        stream = self.source_residual.combine(stream, source.output)
        stream = self.apply_feed_forward(stream)
        return DecoderBlockOutput(stream, DecoderBlockState(memory, state.source), own.weights, source.weights)
