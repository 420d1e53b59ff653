"""Counterparts of the two samples of the second article: an attention layer, and an encoder–decoder that uses it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.layers import Pooling

B, L, D, HIDDEN, T, VOCABULARY = 2, 5, 7, 11, 3, 13


class EncoderDecoder(nn.Module):
    """样例二：编码器、解码器和注意力层放在一起；上下文向量交给解码器，权重一并返回。"""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, D)
        self.encoder = nn.GRU(D, D, batch_first=True)
        self.attention = Pooling.additive(D, HIDDEN)  # 样例一：tanh 隐藏层、打分、softmax、加权平均
        self.decoder = nn.GRU(2 * D, D, batch_first=True)
        self.out = nn.Linear(D, VOCABULARY)

    def forward(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        encoded, hidden = self.encoder(self.embed(source))
        context, weights = self.attention.attend(encoded)
        inputs = torch.cat([self.embed(target), context.expand(-1, target.shape[1], -1)], dim=-1)
        return self.out(self.decoder(inputs, hidden)[0]), weights[:, 0]


def test_the_layer_is_the_formula_of_the_sample() -> None:
    layer, inputs = Pooling.additive(D, HIDDEN), torch.randn(B, L, D)
    context, weights = layer.attend(inputs)
    linear = layer.key[0]
    energy = torch.tanh(F.linear(inputs, linear.weight, linear.bias))
    expected = F.softmax(energy @ layer.query[0], dim=1)
    torch.testing.assert_close(weights[:, 0], expected)
    torch.testing.assert_close(context[:, 0], torch.bmm(expected.unsqueeze(1), inputs).squeeze(1))


def test_the_encoder_decoder_learns_through_the_weights() -> None:
    model = EncoderDecoder()
    outputs, weights = model(torch.randint(VOCABULARY, (B, L)), torch.randint(VOCABULARY, (B, T)))
    assert (outputs.shape, weights.shape) == ((B, T, VOCABULARY), (B, L))
    outputs.sum().backward()
    assert all(parameter.grad is not None for parameter in model.attention.parameters())
