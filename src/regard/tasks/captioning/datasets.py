"""Images with what is right to say of each: scenes that are drawn, or photographs in a folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch

from regard.algebra.shapes import Tensor
from regard.datasets import DATASETS_BY_NAME, find_data
from regard.errors import wrong
from regard.tasks.captioning import scenes
from regard.tasks.captioning.captions import Table, find_file, read_captions
from regard.tasks.captioning.config import CaptioningData
from regard.tasks.data.split_notes import describe_overlaps, describe_sizes
from regard.tasks.images import ImageFiles, as_tensor, compute_grids, load_pretrained, open_photo, resize_to_square
from regard.tasks.images.efficientnet import HEAD, OUTPUT_STRIDE

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGE_PATHS = ("images_128.zip", "images.zip", "images", "Images", "Flicker8k_Dataset", "Flickr8k_Dataset")
PARTS = ("train", "validation", "test")
TRAINING, VALIDATION, TEST = range(3)  # what keeps the seeds of scenes apart


class CaptionedImages(NamedTuple):
    """Images by number: `load_inputs` gives what an encoder is given of some of them, `captions` all that is right of each."""

    captions: Sequence[tuple[str, ...]]
    load_inputs: Callable[[Sequence[int]], Tensor]
    names: Sequence[str]

    def take_first(self, most: int) -> "CaptionedImages":
        """Some from the beginning."""
        return CaptionedImages(self.captions[:most], self.load_inputs, self.names[:most])


@runtime_checkable
class CaptioningDataset(Protocol):
    """Images to learn from, and others that are never learned from."""

    @property
    def regions(self) -> int: ...

    @property
    def channels(self) -> int | None: ...

    @property
    def endless(self) -> bool: ...

    def describe(self) -> Sequence[str]: ...

    def training(self, epoch: int) -> CaptionedImages: ...

    def get_validation_set(self) -> CaptionedImages: ...

    def get_test_sets(self) -> Mapping[str, CaptionedImages]: ...

    def prepare_photo(self, photo: "Image") -> Tensor: ...

    def load_picture(self, collection: CaptionedImages, number: int) -> np.ndarray: ...


@dataclass(frozen=True)
class SceneDataset:
    """Drawings without end."""

    config: CaptioningData
    channels: int | None = None  # pixels: the network that looks at them is learned with the task
    endless: bool = True

    @property
    def regions(self) -> int:
        """A region for each cell."""
        return scenes.ACROSS**2

    def describe(self) -> Sequence[str]:
        """How many scenes each part has."""
        own = self.config
        return [describe_sizes("images", own.scenes, own.held_out, {"test": own.held_out}, endless=True)]

    def training(self, epoch: int) -> CaptionedImages:
        return draw_scenes((self.config.seed, TRAINING, epoch), self.config.scenes)

    def get_validation_set(self) -> CaptionedImages:
        return draw_scenes((self.config.seed, VALIDATION), self.config.held_out)

    def get_test_sets(self) -> Mapping[str, CaptionedImages]:
        return {"scenes": draw_scenes((self.config.seed, TEST), self.config.held_out)}

    def prepare_photo(self, photo: "Image") -> Tensor:
        """A photograph as the encoder is given it."""
        return as_tensor(resize_to_square(photo, scenes.PIXELS))[None]

    def load_picture(self, collection: CaptionedImages, number: int) -> np.ndarray:
        """An image as it is drawn."""
        pixels = collection.load_inputs([number])[0].permute(1, 2, 0).mul(255).round()
        return pixels.to(torch.uint8).numpy()


@lru_cache(maxsize=4)
def draw_scenes(seed: tuple[int, ...], count: int) -> CaptionedImages:
    """So many scenes of a seed."""
    made = [scenes.draw_scene([*seed, number]) for number in range(count)]
    images = torch.from_numpy(np.stack([one.image for one in made])).permute(0, 3, 1, 2)

    def look(numbers: Sequence[int]) -> Tensor:
        return images[torch.tensor(numbers)].float().div_(255)

    return CaptionedImages([one.captions for one in made], look, [f"scene {number}" for number in range(count)])


@dataclass(frozen=True)
class PhotoDataset:
    """Photographs in a folder, each with its captions, as grids of features.

    The folder is opened when its images are asked for: a photograph from elsewhere is captioned without it.
    """

    config: CaptioningData
    channels: int | None = HEAD
    endless: bool = False

    @property
    def regions(self) -> int:
        """A region for each 32 × 32 pixels."""
        return (self.config.pixels // OUTPUT_STRIDE) ** 2

    @cached_property
    def folder(self) -> Path:
        """As it is named, or where data is looked for."""
        folder = find_data(Path(self.config.images))
        if folder is None or not folder.is_dir():
            own = self.config.images
            fix = (
                f"run regard data get {own}, or give a folder"
                if own in DATASETS_BY_NAME
                else "write scenes, or a folder's path"
            )
            expected = "scenes, or a folder with captions.tsv and images"
            raise wrong("data.images", f"no folder {own}", expected, fix)
        return folder

    @cached_property
    def image_files(self) -> ImageFiles:
        return ImageFiles(find_file(self.folder, IMAGE_PATHS, "images", "the images that the captions name"))

    @cached_property
    def table(self) -> Table:
        return read_captions(self.folder, self.image_files)

    def describe(self) -> Sequence[str]:
        """How many images each part has, and how many are the same file under two names."""
        learned, checked, test = (self.image_files.compute_checksums(list(self.table[part])) for part in PARTS)
        counted = describe_sizes("images", len(learned), len(checked), {"test": len(test)})
        return [counted, *describe_overlaps("images", learned, {"validation": checked, "test": test})]

    def training(self, epoch: int) -> CaptionedImages:
        return self.load_split("train")

    def get_validation_set(self) -> CaptionedImages:
        return self.load_split("validation")

    def get_test_sets(self) -> Mapping[str, CaptionedImages]:
        return {"test": self.load_split("test")}

    def load_split(self, split: str) -> CaptionedImages:
        """The images of a part, with their features."""
        names = sorted(name for part in self.table.values() for name in part)
        grids = compute_grids(self.image_files, names, self.config.pixels, cache=self.config.cache)
        numbers = {name: number for number, name in enumerate(names)}
        own = [numbers[name] for name in self.table[split]]

        def look(chosen: Sequence[int]) -> Tensor:
            return grids[[own[number] for number in chosen]]

        return CaptionedImages(list(self.table[split].values()), look, list(self.table[split]))

    def prepare_photo(self, photo: "Image") -> Tensor:
        """A photograph as the encoder is given it."""
        image = as_tensor(resize_to_square(photo, self.config.pixels))[None]
        with torch.inference_mode():
            grid: Tensor = load_network()(image)
        return grid.flatten(2).transpose(1, 2)

    def load_picture(self, collection: CaptionedImages, number: int) -> np.ndarray:
        """An image as it is in its file."""
        name = collection.names[number]
        return np.asarray(open_photo(self.image_files.read(name), name))


load_network = cache(load_pretrained)


def build_dataset(config: CaptioningData) -> CaptioningDataset:
    """The images that a configuration names; a folder is not opened yet."""
    return SceneDataset(config) if config.images == "scenes" else PhotoDataset(config)


def open_dataset(config: CaptioningData) -> CaptioningDataset:
    """The same, opened: what is wrong with a folder is said now."""
    album = build_dataset(config)
    if isinstance(album, PhotoDataset):
        _ = album.table
    return album
