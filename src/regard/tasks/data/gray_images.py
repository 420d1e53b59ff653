"""Small gray pictures of ten classes: scikit-learn's digits, or the idx files of MNIST and its kin."""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.datasets.bounds import check_file, get_bound
from regard.errors import wrong

FILES = {
    "training": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
BYTES = 0x08  # the type of idx files that hold unsigned bytes


class GrayImages(NamedTuple):
    """Pictures from 0 to 1 with their classes, those to learn from before those to test on."""

    training: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


def load_digit_images(seed: int) -> GrayImages:
    """Load the 1,797 digits of 8 × 8 pixels that come with scikit-learn, a fifth of them held out."""
    from sklearn.datasets import load_digits

    found = load_digits()
    pictures = torch.from_numpy(found.images).float() / 16
    classes = torch.from_numpy(found.target).long()
    order = torch.from_numpy(np.random.default_rng([seed, 5]).permutation(len(classes)))
    cut = round(0.2 * len(classes))
    return GrayImages((pictures[order[cut:]], classes[order[cut:]]), (pictures[order[:cut]], classes[order[:cut]]))


def read_idx_folder(folder: Path) -> GrayImages:
    """Read a folder with the four files of MNIST, gzipped or not."""
    parts = []
    for pictures, classes in FILES.values():
        images, labels = read_idx(folder, pictures, 3), read_idx(folder, classes, 1)
        if len(images) != len(labels):
            got = f"{len(images)} pictures in {pictures} and {len(labels)} classes in {classes}"
            raise wrong("data", got, "equally many", "take both files from the same place")
        if len(labels) and int(labels.max()) > 9:
            got, fix = f"class {int(labels.max())} in {classes}", "use files of ten classes"
            raise wrong("data", got, "classes from 0 to 9", fix)
        parts.append((images.float() / 255, labels.long()))
    return GrayImages(*parts)


def read_idx(folder: Path, name: str, axes: int) -> Tensor:
    """Read one idx file: two zeros, a type, the number of axes, their lengths, and the bytes."""
    path = next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
    if path is None:
        fix = "name the folder with the four files of MNIST, or one with folders 0 to 9 of images"
        raise wrong("data", f"no {name} or {name}.gz in {folder}", "idx files", fix)
    content = read_decompressed_idx(path)
    header = 4 + 4 * axes
    if len(content) < header or content[:4] != bytes((0, 0, BYTES, axes)):
        raise wrong(
            "data", f"{path.name}, which does not begin as one", f"an idx file of {axes} axes", "check its name"
        )
    shape = struct.unpack(f">{axes}I", content[4:header])
    if len(content) - header != math.prod(shape):
        got = f"{len(content) - header} bytes in {path.name}"
        raise wrong("data", got, f"{math.prod(shape)}, as its head says", "fetch it again")
    if not math.prod(shape) or shape[1:2] != shape[2:3]:
        got = f"{' × '.join(map(str, shape))} in {path.name}"
        raise wrong("data", got, "some, and pictures as wide as they are high", "check where it is from")
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy())


def read_decompressed_idx(path: Path) -> bytes:
    """Return the content of a file, gzipped or not, of at most so many bytes: a small gzip may hold any number."""
    largest = get_bound("idx file", "bytes")
    check_file("data", path, largest, path.name)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content: bytes = file.read(largest + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise wrong("data", f"{path.name} ({error})", "a whole gzip file", "fetch it again") from None
    if len(content) > largest:
        raise wrong("data", f"{path.name} of more than {largest:,} bytes", f"at most {largest:,}", "check the file")
    return content
