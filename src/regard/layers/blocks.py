"""The blocks that stacks are made of: feed-forward, residual and norm, encoder, decoder."""

import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from torch import nn

from regard.algebra.masks import Causal, Mask
from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.dropout import add_dropout, dropout, relu_dropout
from regard.compute.weights import Weights
from regard.errors import wrong
from regard.layers.attention import Attention
from regard.layers.mechanism import choose_mask
from regard.layers.memory import FULL, Memory, combine_masks, zero_harmful_padding
from regard.layers.projections import build_linear

Stream = Float[Tensor, "*lead length size"]
CAUSAL = Causal()


class FeedForward(nn.Module):
    r"""The same small network at every position.

    $$ \mathrm{FFN}(x) = W_2\, \phi(W_1 x + b_1) + b_2 $$

    with $W_1$ = `widen`, $W_2$ = `narrow` and $\phi$ = `activation`, ReLU if none is given. Vaswani et al. 2017,
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
    """A residual connection with its norm around a part, which the caller computes between `prepare` and `combine`.

    `eps` is that of the norm. BERT has 1e-12 and ViT 1e-6, which a block takes as `residual=PreNorm.with_eps(1e-6)`.
    """

    def __init__(self, size: int, *, dropout: float = 0.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size, eps=eps)
        self.dropout = dropout

    @classmethod
    def with_eps(cls, eps: float) -> "ResidualKind":
        """Return this kind of residual, with that `eps` in its norm."""
        return functools.partial(cls, eps=eps)

    def add(self, stream: Stream, change: Stream) -> Stream:
        """Add a change to the stream, with dropout on the change while training."""
        return add_dropout(stream, change, self.dropout if self.training else 0.0)

    @abstractmethod
    def prepare(self, stream: Stream) -> Stream:
        """Return the input of the part."""

    @abstractmethod
    def combine(self, stream: Stream, change: Stream) -> Stream:
        """Return the stream after the part's change to it."""


ResidualKind = Callable[..., Residual]


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
    """What encoder and decoder blocks share: a feed-forward network with its residual, and the order of the norms.

    The paper puts the norm last (`residual=PostNorm`), and so do torch's layers and BERT. The default is norm first
    (`PreNorm`), as in GPT-2 and later models: gradients then pass the residual connections unscaled, and deep stacks
    train without a warm-up. After a stack of norm-first blocks comes one more norm, which the stack adds.
    """

    feed_forward: nn.Module
    forward_residual: Residual

    def apply_feed_forward(self, stream: Stream) -> Stream:
        """Return the stream after the feed-forward network."""
        change = self.feed_forward(self.forward_residual.prepare(stream))
        return self.forward_residual.combine(stream, change)


class EncoderBlock(Block):
    """Self-attention and feed-forward, each with its residual and norm. Vaswani et al. 2017, §3.1.

    Attention with that many `heads` and a feed-forward network four times as wide, as in the paper, unless they are
    given. The norm comes first; `residual=PostNorm` puts it last, as in the paper: see `Block`.

    >>> EncoderBlock(6, heads=2)(torch.randn(5, 7, 6)).shape
    torch.Size([5, 7, 6])
    >>> block = EncoderBlock(6, attention=Attention(6, groups=1, heads=2), feed_forward=FeedForward(6, 12))
    """

    def __init__(
        self,
        size: int,
        heads: int | None = None,
        *,
        attention: Attention | None = None,
        feed_forward: nn.Module | None = None,
        residual: ResidualKind = PreNorm,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = _choose_attention("attention", attention, size, heads)
        self.attention.role = "self"
        self.feed_forward = _choose_feed_forward(feed_forward, size, dropout)
        self.attention_residual, self.forward_residual = (residual(size, dropout=dropout) for _ in range(2))

    def forward(self, stream: Stream, *, mask: Mask | str | None = FULL, real: Mask = FULL) -> Stream:
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

    All positions at once and one position at a time are the same call: what is given is appended to the state. The
    norm comes first; `residual=PostNorm` puts it last, as in the paper: see `Block`.

    >>> block = DecoderBlock(6, heads=2)
    >>> block(torch.randn(5, 7, 6), torch.randn(5, 11, 6)).output.shape
    torch.Size([5, 7, 6])
    >>> block = DecoderBlock(6, heads=2, source=Attention(6, heads=3, source=4))
    >>> state = block.begin(torch.randn(5, 11, 4))  # the source is projected once
    >>> first = block(torch.randn(5, 1, 6), state)
    >>> second = block(torch.randn(5, 1, 6), first.state)
    """

    def __init__(
        self,
        size: int,
        heads: int | None = None,
        *,
        attention: Attention | None = None,
        source: Attention | None = None,
        feed_forward: nn.Module | None = None,
        residual: ResidualKind = PreNorm,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = _choose_attention("attention", attention, size, heads)
        self.source = _choose_attention("source", source, size, heads)
        self.attention.role, self.source.role = "self", "cross"
        self.feed_forward = _choose_feed_forward(feed_forward, size, dropout)
        self.attention_residual, self.source_residual, self.forward_residual = (
            residual(size, dropout=dropout) for _ in range(3)
        )

    def begin(self, source: Float[Tensor, "*lead key source"], *, mask: Mask = FULL) -> DecoderBlockState:
        """Return the state before the first position; the source is projected once."""
        return DecoderBlockState(None, self.source.remember(source, mask=mask))

    def forward(
        self, stream: Stream, state: DecoderBlockState | Tensor, *, mask: Mask | str | None = FULL, real: Mask = FULL
    ) -> DecoderBlockOutput:
        """Return the stream after the block, the new state and the weights of both attentions.

        `state` is that of the positions before, or the source itself if there are none. `real` allows positions that
        are not padding; `mask` says which of them, out of those before it, a position sees: a `Window`, for example.
        """
        state = self.begin(state) if isinstance(state, Tensor) else state
        stream = zero_harmful_padding(stream, real)
        prepared = self.attention_residual.prepare(stream)
        mask = combine_masks(CAUSAL, choose_mask(mask))
        own, memory = self.attention.attend_self(prepared, before=state.own, mask=mask, real=real)
        stream = self.attention_residual.combine(stream, own.output)
        source = self.source.attend(self.source_residual.prepare(stream), state.source)
        stream = self.source_residual.combine(stream, source.output)
        stream = self.apply_feed_forward(stream)
        return DecoderBlockOutput(stream, DecoderBlockState(memory, state.source), own.weights, source.weights)


def _choose_attention(name: str, attention: Attention | None, size: int, heads: int | None) -> Attention:
    """Return the attention that is given, or one with that many heads."""
    if attention is not None:
        return attention
    if heads is None:
        raise wrong("heads", None, "a number of heads", f"write heads=8, or {name}=Attention({size}, heads=8)")
    return Attention(size, heads=heads)


def _choose_feed_forward(feed_forward: nn.Module | None, size: int, dropout: float) -> nn.Module:
    """Return the network that is given, or one four times as wide as its input."""
    return FeedForward(size, 4 * size, dropout=dropout) if feed_forward is None else feed_forward
