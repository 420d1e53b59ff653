"""A reader uses every part of its mechanism, or refuses it."""

import re
from typing import Any

import pytest
import torch
from torch import nn

from regard import ALiBi, Argmax, Bias, ChunkwiseMonotonic, Dense, Monotonic, Prior, Relative, Softmax, Sparsemax
from regard.algebra.normalizers import LocalGaussian
from regard.algebra.pairs import Pairs
from regard.algebra.scores import Dot
from regard.algebra.shapes import Tensor
from regard.errors import InputError
from regard.layers import Attention, LocalAttention, LocationFeatures, Mechanism, Rotary
from regard.layers.blocks import DecoderBlock
from regard.layers.projections import Projections
from regard.models import EncoderOutput
from regard.models.convolution import GatedConvolution
from regard.models.decoders.attention_scopes import GlobalScope, MonotonicScope, PredictiveScope
from regard.models.decoders.convolutional import ConvolutionalStage
from regard.models.decoders.decoder_attention import (
    ContentAttention,
    DecoderAttention,
    LocationAwareAttention,
    MonotonicAttention,
)
from regard.models.decoders.region_attention import RegionAttention
from regard.models.decoders.transformer import TransformerDecoder
from regard.models.embedding import TokenEmbedding

B, S, T, D = 3, 5, 4, 7


class Energy(Bias):
    """Raffel's r: one number for all pairs, that is learned."""

    def __init__(self, number: float = -4.0) -> None:
        super().__init__()
        self.number = nn.Parameter(torch.tensor(number, dtype=torch.float64))

    def forward(self, pairs: Pairs) -> Tensor:
        return self.number.view(1, 1)


def draw_encoded() -> EncoderOutput:
    states = torch.randn(B, S, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return EncoderOutput(states, torch.tensor([5, 2, 4]), states.mean(1))


def draw_queries() -> Tensor:
    return torch.randn(B, T, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def build_attention(dropout: float = 0.0, heads: int = 1, rotary: Rotary | None = None, **parts: Any) -> Attention:
    return Attention(Projections(heads=heads), mechanism=Mechanism(Dot(), **parts), dropout=dropout, rotary=rotary)


READERS = {
    "walking": lambda own: MonotonicAttention(GlobalScope(own(normalizer=Monotonic())), width=D),
    "chunkwise": lambda own: MonotonicAttention(GlobalScope(own(normalizer=ChunkwiseMonotonic(2))), width=D),
    "glancing": lambda own: RegionAttention(own(), query=D, width=D, gated=False).double(),
    "attentive": lambda own: ContentAttention(GlobalScope(own()), width=D),
    "near": lambda own: ContentAttention(PredictiveScope(own(), radius=2, size=D), width=D).double(),
    "aware": lambda own: LocationAwareAttention(GlobalScope(own()), LocationFeatures(D), width=D).double(),
}


def attend_stepwise(reader: DecoderAttention) -> tuple[Tensor, Tensor]:
    """Return contexts and weights, one step after another."""
    seen, contexts, weights = reader.begin(draw_encoded()), [], []
    for query in draw_queries().unbind(1):
        look = reader.attend_step(query, seen)
        seen = look.state
        contexts.append(look.context)
        weights.append(look.weights.dense())  # type: ignore[union-attr]
    return torch.stack(contexts, 1), torch.stack(weights, 1)


@pytest.mark.parametrize(
    "bias", [Prior(torch.linspace(-3, 3, S, dtype=torch.float64)), Energy()], ids=["prior", "energy"]
)
@pytest.mark.parametrize("name", READERS)
def test_the_bias_of_a_mechanism_counts_in_every_reader(name: str, bias: Bias) -> None:
    torch.manual_seed(0)
    reader = READERS[name](lambda **parts: build_attention(bias=bias, **parts))
    contexts, weights = attend_stepwise(reader)
    torch.manual_seed(0)
    plain = attend_stepwise(READERS[name](build_attention))[0]
    changes = not isinstance(bias, Energy) or name in ("walking", "chunkwise")  # softmax does not see a number for all
    assert torch.allclose(contexts, plain) != changes
    assert torch.allclose(contexts, weights @ draw_encoded().states)
    if reader.parallel:
        whole = reader.attend_all(draw_queries(), draw_encoded())
        assert torch.allclose(whole.contexts, contexts)
        assert torch.allclose(whole.weights.dense(), weights)  # type: ignore[union-attr]


def test_an_energy_bias_is_learned() -> None:
    energy = Energy()
    contexts, _ = attend_stepwise(
        MonotonicAttention(GlobalScope(build_attention(bias=energy, normalizer=Monotonic())), width=D)
    )
    contexts.sum().backward()
    assert energy.number.grad is not None
    assert energy.number.grad.abs() > 0


POSITIONS = [ALiBi(1), Relative(1), Dense(torch.zeros(1, S)), Dense(torch.zeros(T, S))]


@pytest.mark.parametrize("bias", POSITIONS, ids=lambda bias: type(bias).__name__)
@pytest.mark.parametrize("name", READERS)
def test_a_bias_that_counts_queries_is_refused(name: str, bias: Bias) -> None:
    sentence = (
        f"mechanism.bias: got {type(bias).__name__}, expected one that gives every query the same number for a key"
    )
    with pytest.raises(InputError, match=re.escape(sentence)):
        READERS[name](lambda **parts: build_attention(bias=bias, **parts))


@pytest.mark.parametrize("name", READERS)
def test_rotary_positions_of_a_source_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=re.escape("attention.rotary: got Rotary, expected none in cross-attention")):
        READERS[name](lambda **parts: build_attention(rotary=Rotary(2), **parts))


@pytest.mark.parametrize("name", ["glancing", "attentive", "aware"])
def test_rows_that_follow_one_another_are_for_walking(name: str) -> None:
    with pytest.raises(InputError, match=re.escape("fix: use MonotonicAttention(…)")):
        READERS[name](lambda: build_attention(normalizer=Monotonic()))
    with pytest.raises(InputError, match=re.escape("fix: use PredictiveScope(…)")):
        READERS[name](lambda: build_attention(normalizer=LocalGaussian(torch.zeros(1), 1.0)))


@pytest.mark.parametrize("name", ["walking", "glancing"])
def test_a_second_head_and_another_aggregate_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"^attention.heads: got 7, expected 1"):
        READERS[name](lambda **parts: build_attention(heads=D, **parts))
    with pytest.raises(InputError, match=r"^mechanism.aggregate: got Argmax, expected Soft"):
        READERS[name](lambda **parts: build_attention(aggregate=Argmax(), **parts))


def test_a_walk_goes_over_all_keys() -> None:
    with pytest.raises(InputError, match=r"^scope: got MonotonicScope, expected GlobalScope"):
        MonotonicAttention(MonotonicScope(build_attention(normalizer=Monotonic()), radius=1), width=D)


@pytest.mark.parametrize("name", READERS)
def test_dropout_of_the_attention_counts_while_training(name: str) -> None:
    torch.manual_seed(0)
    reader = READERS[name](lambda **parts: build_attention(dropout=0.5, **parts))
    plain = attend_stepwise(reader.eval())[0]
    assert torch.equal(plain, attend_stepwise(reader)[0])
    assert not torch.allclose(plain, attend_stepwise(reader.train())[0])


@pytest.mark.parametrize(
    "normalizer", [Sparsemax(), Softmax(2.0), Softmax(torch.tensor(2.0))], ids=["sparse", "2", "tensor"]
)
def test_local_attention_refuses_a_normalizer_that_it_would_replace(normalizer: Any) -> None:
    sentence = (
        f"mechanism.normalizer: got {type(normalizer).__name__}, expected Softmax(), which the Gaussian is put on"
    )
    with pytest.raises(InputError, match=re.escape(sentence)):
        LocalAttention(build_attention(normalizer=normalizer), radius=2, size=D)


def test_other_decoders_refuse_what_counts_queries_too() -> None:
    counting = build_attention(bias=ALiBi(1))
    with pytest.raises(InputError, match=r"^mechanism.bias: got ALiBi"):
        ConvolutionalStage(GatedConvolution(D, width=3), counting, width=D, size=D, content=D)
    block = DecoderBlock(D, attention=build_attention(), source=counting, feed_forward=nn.Identity())
    with pytest.raises(InputError, match=r"^mechanism.bias: got ALiBi"):
        TransformerDecoder(TokenEmbedding(nn.Embedding(3, D)), [block], nn.Linear(D, 3))
