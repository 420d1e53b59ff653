"""Counterpart of the steps of the fourth article: predict the next vector from those before it, by attention."""

import torch
from torch import nn

from regard import attend


def test_the_eight_steps_learn() -> None:
    """取数据、嵌入、查询与键的内积、softmax、加权求和、线性层、均方误差、梯度下降。"""
    torch.manual_seed(0)
    embed, out = nn.Linear(4, 8, bias=False), nn.Linear(4, 4)
    optimizer = torch.optim.Adam([*embed.parameters(), *out.parameters()], lr=0.02)
    losses = []
    for _ in range(150):
        sequence = torch.randn(16, 6, 4)
        sequence[:, -1] = sequence[:, 2]  # 要预测的向量与当前向量之后见过的相同
        embedded = embed(sequence[:, :-1])
        context, _ = attend(embedded[:, 2:3], embedded, sequence[:, :-1], score="点积")
        loss = nn.functional.mse_loss(out(context[:, 0]), sequence[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])
