"""Counterparts of the samples of the article on gated attention heads (samples 1 to 5 of the first article).

Each function is about as long as the sample it stands for. 注释用中文：这些函数以后会成为文档中的一页。
"""

import pytest
import torch
from torch import nn

from regard.layers import GatedHeads

sklearn = pytest.importorskip("sklearn.datasets")


def load_data() -> tuple[torch.Tensor, torch.Tensor]:
    """样例一：数据准备。手写数字，归一化，8 行像素就是长度为 8 的序列。"""
    digits = sklearn.load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)
    return (images - images.mean()) / images.std(), torch.tensor(digits.target)


def build_plain_net() -> nn.Module:
    """样例二：没有注意力的网络，两个隐含层。"""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def build_attention() -> GatedHeads:
    """样例三、四：带输入门的注意力头，以及注意力矩阵、更新向量、门控单元组成的模块。"""
    return GatedHeads(8, 10, heads=4, hidden=32, positions=8, steps=2)


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, steps: int = 60) -> float:
    """样例五：训练流程。输出、权重、门和状态都在返回值里，损失只用输出。"""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = model(images)
        logits = outputs if isinstance(outputs, torch.Tensor) else outputs.output
        loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
    return float((logits.argmax(-1) == labels).float().mean())


@pytest.mark.parametrize("build", [build_plain_net, build_attention])
def test_both_learn_the_digits(build: type[nn.Module]) -> None:
    torch.manual_seed(7)
    images, labels = load_data()
    assert train(build(), images[:300], labels[:300]) > 0.8


def test_the_module_gives_its_weights_gates_and_state_and_goes_on_from_a_state() -> None:
    images, _ = load_data()
    model = build_attention()
    first = model(images[:5])
    assert first.weights.shape == (5, 2, 4, 8)
    assert first.gates.shape == (5, 2, 4)
    torch.testing.assert_close(first.weights.sum(-1), torch.ones(5, 2, 4))
    again = model(images[:5], state=first.state)
    assert not torch.equal(again.output, first.output)
