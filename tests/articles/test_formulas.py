"""Counterparts of the formulas of the third and fifth article, one line of regard for each."""

import math

import torch

from regard import Additive, Bilinear, attend, masked_softmax
from regard.layers import Attention, DecoderBlock, EncoderBlock, PostNorm, Sinusoidal, rotation, sinusoids
from regard.layers.estimators import KernelRegressor

B, L, S, Q, K, V = 2, 5, 7, 11, 13, 3
QUERY, KEY, VALUE = torch.randn(B, L, Q), torch.randn(B, S, K), torch.randn(B, S, V)


def test_kernel_regression() -> None:
    """Nadaraya–Watson 核回归：平均、高斯核、可学习的带宽。"""
    x, y = torch.linspace(0, 5, S)[:, None], torch.randn(S, 1)
    new = torch.tensor([[1.3]])
    output, weights = attend(new, x, y, score="高斯核")
    torch.testing.assert_close(weights.dense(), torch.softmax(-((new - x.T) ** 2) / 2, -1))
    torch.testing.assert_close(output, weights.dense() @ y)
    assert KernelRegressor("learned", steps=3).fit(x.numpy(), y[:, 0].numpy()).bandwidth_ > 0


def test_masked_softmax() -> None:
    """掩蔽 softmax：超出有效长度的位置权重为零。"""
    weights = masked_softmax(torch.rand(2, 2, 4), torch.tensor([2, 3]))
    assert (weights > 0).sum(-1).tolist() == [[2, 2], [3, 3]]
    weights = masked_softmax(torch.rand(2, 2, 4), torch.tensor([[1, 3], [2, 4]]))
    assert (weights > 0).sum(-1).tolist() == [[1, 3], [2, 4]]


def test_additive_and_scaled_dot() -> None:
    """加性注意力（查询与键长度可以不同）与缩放点积注意力。"""
    score = Additive(query=Q, key=K, hidden=8)
    _, weights = attend(QUERY, KEY, VALUE, score=score)
    assert score.query is not None
    assert score.key is not None
    hidden = torch.tanh(score.query(QUERY)[:, :, None] + score.key(KEY)[:, None])
    torch.testing.assert_close(weights.dense(), (hidden @ score.weight).softmax(-1))
    _, weights = attend(QUERY, KEY[..., :Q], VALUE)
    torch.testing.assert_close(weights.dense(), (QUERY @ KEY[..., :Q].mT / math.sqrt(Q)).softmax(-1))


def test_luong_and_bahdanau_in_four_steps() -> None:
    """打分、权重、上下文向量、注意力向量 tanh(W[c; h])。"""
    state, memory, combine = torch.randn(B, 1, Q), torch.randn(B, S, Q), torch.nn.Linear(2 * Q, Q, bias=False)
    for score in (Bilinear(Q), Additive(Q)):
        context, weights = attend(state, memory, memory, score=score)
        expected = torch.softmax(score(state, memory), -1)
        torch.testing.assert_close(weights.dense(), expected)
        torch.testing.assert_close(context, expected @ memory)
        assert torch.tanh(combine(torch.cat([context, state], -1))).shape == (B, 1, Q)


def test_multi_head_and_self_attention() -> None:
    """多头注意力：查询、键、值；自注意力：同一个序列。"""
    layer, x, y = Attention(100, heads=5), torch.ones(B, 4, 100), torch.ones(B, 6, 100)
    assert layer(x).shape == layer(x, y, y).shape == (B, 4, 100)
    output, weights = layer.attend(x, y, mask="full")
    assert (output.shape, weights[0, 2].shape) == ((B, 4, 100), (4, 6))


def test_positions_turn() -> None:
    """位置编码：偏移 δ 是一个与位置无关的旋转。"""
    table = sinusoids(60, 32)
    torch.testing.assert_close(table[:50] @ rotation(10, 32).T, table[10:])
    torch.testing.assert_close(Sinusoidal(32)(torch.zeros(1, 60, 32).double())[0], table)


def test_transformer_blocks() -> None:
    """Transformer：编码器块与解码器块，残差连接之后是层规范化。"""
    encoder = EncoderBlock(24, heads=8, residual=PostNorm, dropout=0.5).eval()
    decoder = DecoderBlock(24, heads=8, residual=PostNorm, dropout=0.5).eval()
    source, target = torch.ones(B, 10, 24), torch.ones(B, 6, 24)
    assert decoder(target, encoder(source)).output.shape == (B, 6, 24)
