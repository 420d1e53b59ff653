"""Feed-forward, residual and norm, encoder and decoder blocks."""

import pytest
import torch
from torch import nn

from regard.algebra.masks import Causal, Lengths, Mask, Window
from regard.algebra.normalizers import Sparsemax
from regard.algebra.scores import Gaussian
from regard.errors import InputError
from regard.layers import (
    Attention,
    DecoderBlock,
    EncoderBlock,
    FeedForward,
    Mechanism,
    PostNorm,
    PreNorm,
    Residual,
    Rotary,
)
from regard.layers.blocks import DecoderBlockState

B, H, L, S, D, W = 2, 3, 5, 7, 10, 13
SIZE, HIDDEN = H * D, 37


def from_torch_encoder(module: nn.TransformerEncoderLayer, residual: type[Residual]) -> EncoderBlock:
    forward = FeedForward(SIZE, HIDDEN).double()
    forward.widen, forward.narrow = module.linear1, module.linear2
    attention = Attention.from_torch(module.self_attn)
    block = EncoderBlock(SIZE, attention=attention, feed_forward=forward, residual=residual).double()
    block.attention_residual.norm, block.forward_residual.norm = module.norm1, module.norm2
    return block


@pytest.mark.parametrize(("residual", "first"), [(PreNorm, True), (PostNorm, False)])
def test_the_encoder_block_is_that_of_torch(residual: type[Residual], first: bool) -> None:
    module = nn.TransformerEncoderLayer(SIZE, H, HIDDEN, dropout=0.0, batch_first=True, norm_first=first).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    block = from_torch_encoder(module, residual)
    x = torch.randn(B, L, SIZE).double()
    torch.testing.assert_close(block(x), module(x))
    upper = torch.ones(L, L).triu(1).bool()
    torch.testing.assert_close(block(x, mask=Causal()), module(x, src_mask=upper))
    padded = torch.tensor([[False] * L, [False] * 3 + [True] * 2])
    expected = module(x, src_key_padding_mask=padded)
    output = block(x, real=Mask.drop(padded[:, None]))
    torch.testing.assert_close(output[~padded], expected[~padded])


@pytest.mark.parametrize(("residual", "first"), [(PreNorm, True), (PostNorm, False)])
def test_the_decoder_block_is_that_of_torch(residual: type[Residual], first: bool) -> None:
    module = nn.TransformerDecoderLayer(SIZE, H, HIDDEN, dropout=0.0, batch_first=True, norm_first=first).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    forward = FeedForward(SIZE, HIDDEN)
    forward.widen, forward.narrow = module.linear1, module.linear2
    own, source = Attention.from_torch(module.self_attn), Attention.from_torch(module.multihead_attn)
    block = DecoderBlock(SIZE, attention=own, source=source, feed_forward=forward, residual=residual)
    block.attention_residual.norm, block.source_residual.norm = module.norm1, module.norm2
    block.forward_residual.norm = module.norm3
    x, encoded = torch.randn(B, L, SIZE).double(), torch.randn(B, S, SIZE).double()
    padded = torch.tensor([[False] * S, [False] * 3 + [True] * 4])
    upper = torch.ones(L, L).triu(1).bool()
    expected = module(x, encoded, tgt_mask=upper, memory_key_padding_mask=padded)
    output = block(x, block.begin(encoded, mask=Mask.drop(padded[:, None]))).output
    torch.testing.assert_close(output, expected)


def build_decoder(residual: type[Residual], rotary: Rotary | None, groups: int) -> DecoderBlock:
    own = Attention(SIZE, heads=H, groups=groups, rotary=rotary, mechanism=Mechanism(Gaussian()))
    source = Attention(SIZE, heads=H, source=W, mechanism=Mechanism(normalizer=Sparsemax()))
    forward = FeedForward(SIZE, HIDDEN, activation=nn.GELU())
    return DecoderBlock(SIZE, attention=own, source=source, feed_forward=forward, residual=residual).double()


@pytest.mark.parametrize("residual", [PreNorm, PostNorm])
@pytest.mark.parametrize("rotary", [None, Rotary(D)])
@pytest.mark.parametrize("groups", [1, H])
def test_stepping_is_the_whole(residual: type[Residual], rotary: Rotary | None, groups: int) -> None:
    block = build_decoder(residual, rotary, groups)
    x, source = torch.randn(B, L, SIZE).double(), torch.randn(B, S, W).double()
    begin = block.begin(source, mask=Lengths(torch.tensor([S, 0])))
    whole = block(x, begin)
    state, steps = begin, []
    for t in range(L):
        decoded = block(x[:, t : t + 1], state)
        state = decoded.state
        steps.append(decoded.output)
        torch.testing.assert_close(decoded.source.dense()[..., 0, :], whole.source.dense()[..., t, :])
        torch.testing.assert_close(decoded.own.dense()[..., 0, :], whole.own.dense()[..., t, : t + 1])
    torch.testing.assert_close(torch.cat(steps, 1), whole.output)
    assert begin.own is None


def test_a_beam_reorders_the_state() -> None:
    block = build_decoder(PreNorm, None, H)
    x, source = torch.randn(B, L, SIZE).double(), torch.randn(B, S, W).double()
    state = block(x[:, :3], block.begin(source, mask=Lengths(torch.tensor([S, 2])))).state
    index = torch.tensor([1, 0, 1])
    assert state.own is not None
    chosen = DecoderBlockState(state.own.select(index), state.source.select(index))
    torch.testing.assert_close(block(x[index, 3:], chosen).output, block(x[:, 3:], state).output[index])


@pytest.mark.parametrize("residual", [PreNorm, PostNorm])
@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_padding_never_leaks(residual: type[Residual], poison: float) -> None:
    block = EncoderBlock(
        SIZE, attention=Attention(SIZE, heads=H), feed_forward=FeedForward(SIZE, HIDDEN), residual=residual
    ).double()
    x = torch.randn(B, L, SIZE).double()
    dirty = x.clone()
    dirty[0, 3:] = dirty[1] = poison
    output = block(dirty, real=Lengths(torch.tensor([3, 0])))
    torch.testing.assert_close(output[0, :3], block(x[:1, :3])[0])
    assert output.isfinite().all()
    output[0, :3].sum().backward()
    for name, parameter in block.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_the_decoder_survives_an_empty_source_and_a_padded_target() -> None:
    block = build_decoder(PreNorm, None, H)
    x, source = torch.randn(B, L, SIZE).double(), torch.randn(B, S, W).double()
    source[1], x[0, 3:] = float("nan"), float("nan")
    decoded = block(x, block.begin(source, mask=Lengths(torch.tensor([S, 0]))), real=Lengths(torch.tensor([3, L])))
    assert decoded.output.isfinite().all()
    assert torch.equal(decoded.source.dense()[1], torch.zeros(H, L, S).double())
    decoded.output.sum().backward()
    for name, parameter in block.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_feed_forward_is_the_formula() -> None:
    layer, x = FeedForward(SIZE, HIDDEN).double(), torch.randn(B, L, SIZE).double()
    hidden = (x @ layer.widen.weight.T + layer.widen.bias).clamp_min(0)
    torch.testing.assert_close(layer(x), hidden @ layer.narrow.weight.T + layer.narrow.bias)


def test_dropout_is_in_residual_and_forward_and_rests_in_evaluation() -> None:
    attention, forward = Attention(SIZE, heads=H), FeedForward(SIZE, HIDDEN, dropout=0.5)
    block = EncoderBlock(SIZE, attention=attention, feed_forward=forward, dropout=0.5)
    x = torch.randn(B, L, SIZE)
    assert not torch.equal(block(x), block(x))
    block.eval()
    assert torch.equal(block(x), block(x))


def test_the_shortest_blocks_are_those_of_the_paper_and_of_torch() -> None:
    """As many parameters as torch's layers of the same size, whose feed-forward network is given its width."""
    x, encoded = torch.randn(B, L, 40), torch.randn(B, S, 40)
    for block, twin in (
        (EncoderBlock(40, heads=4), nn.TransformerEncoderLayer(40, 4, 160)),
        (DecoderBlock(40, heads=4), nn.TransformerDecoderLayer(40, 4, 160)),
    ):
        assert sum(p.numel() for p in block.parameters()) == sum(p.numel() for p in twin.parameters())
    block = DecoderBlock(40, heads=4).eval()
    torch.testing.assert_close(block(x, encoded).output, block(x, block.begin(encoded)).output)


def test_a_block_without_heads_or_attention_says_what_to_write() -> None:
    with pytest.raises(InputError) as caught:
        EncoderBlock(40)
    expected = "heads: got None, expected a number of heads; fix: write heads=8, or attention=Attention(40, heads=8)"
    assert str(caught.value) == expected


def test_the_mask_of_a_decoder_block_is_joined_with_the_causal_one_and_steps_agree() -> None:
    block = build_decoder(PreNorm, None, H)
    x, source = torch.randn(B, L, SIZE).double(), torch.randn(B, S, W).double()
    whole = block(x, source, mask=Window(before=2, after=9))
    seen = whole.own.dense() > 0
    assert not seen[..., Causal().table(L, L).logical_not()].any()
    assert not seen[..., 4, 1].any()
    assert seen[..., 4, 2].all()
    state = block.begin(source)
    for step in range(L):
        out = block(x[:, step : step + 1], state, mask=Window(before=2, after=9))
        torch.testing.assert_close(out.output[:, 0], whole.output[:, step])
        state = out.state


def test_the_eps_of_a_norm_is_given_with_the_residual() -> None:
    block = EncoderBlock(40, heads=4, residual=PostNorm.with_eps(1e-12))
    assert type(block.attention_residual) is PostNorm
    assert block.attention_residual.norm.eps == block.forward_residual.norm.eps == 1e-12
