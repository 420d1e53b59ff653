"""Pictures of one's own: a folder with a folder of images for each digit."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from regard.errors import wrong
from regard.tasks.data.gray_images import GrayImages
from regard.tasks.data.held_out import assign_parts
from regard.tasks.images.features import ENDINGS
from regard.tasks.images.photos import as_tensor, open_photo, resize_to_square

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 28  # pixels, as MNIST has them
LEAST = 5  # pictures, to learn, validate and test


def has_digit_folders(folder: Path) -> bool:
    """Return whether there is a folder for a digit."""
    return any((folder / str(digit)).is_dir() for digit in range(10))


def list_images(folder: Path) -> list[str]:
    """Return the images in the folders 0 to 9, by their paths in this one."""
    names = [
        str(path.relative_to(folder))
        for digit in range(10)
        for path in sorted((folder / str(digit)).glob("*"))
        if path.name.lower().endswith(ENDINGS)
    ]
    if len(names) < LEAST:
        fix = f"put images such as {folder.name}/7/photo.png there"
        raise wrong("data", f"{len(names)} images in the folders 0 to 9", f"at least {LEAST}", fix)
    return names


def read_image_folder(folder: Path) -> GrayImages:
    """Read the images in the folders 0 to 9; a tenth is for the test, by a hash of the names."""
    names = list_images(folder)
    parts = assign_parts(names)
    split = [[name for name in names if (parts[name] == "test") == test] for test in (False, True)]
    return GrayImages(*(read_images(folder, chosen) for chosen in split))


def read_images(folder: Path, names: list[str], side: int = SIDE) -> tuple[Tensor, Tensor]:
    """Return pictures from 0 to 1, and the digits that their folders are named for."""
    pictures = torch.stack([convert_photo(open_photo(folder / name, name), side) for name in names])
    return pictures, torch.tensor([int(Path(name).parts[0]) for name in names])


def convert_photo(photo: "Image", side: int) -> Tensor:
    """Return a photograph as the training pictures are: ink is 1 and paper 0, whichever is the lighter."""
    gray = as_tensor(resize_to_square(photo, side)).mean(0)
    return 1 - gray if float(gray.mean()) > 0.5 else gray
