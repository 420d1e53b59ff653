"""Images with their captions: generated scenes, or photographs in a folder."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import torch

from regard.algebra.shapes import Tensor
from regard.datasets import DATASETS_BY_NAME, find_data
from regard.errors import wrong
from regard.tasks.captioning.captions import Table, find_file, names_splits, read_captions
from regard.tasks.captioning.config import CaptioningData
from regard.tasks.data.fingerprints import digest
from regard.tasks.data.split_notes import describe_overlaps, describe_sizes
from regard.tasks.data.words import WordCut, normalize_words
from regard.tasks.images import (
    ImageFiles,
    as_tensor,
    compute_grids,
    load_pretrained,
    open_photo,
    resize_to_square,
    scenes,
)
from regard.tasks.images.efficientnet import HEAD, OUTPUT_STRIDE
from regard.tasks.images.scene_language import LANGUAGES, caption_groups

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGE_PATHS = ("images_128.zip", "images.zip", "images", "Images", "Flicker8k_Dataset", "Flickr8k_Dataset")
PARTS = ("train", "validation", "test")
TRAINING, VALIDATION, TEST = range(3)  # what keeps the seeds of scenes apart


class CaptionedImages(NamedTuple):
    """Images by number, with all captions of each; `load_inputs` returns the encoder's inputs of some of them."""

    captions: Sequence[tuple[str, ...]]
    load_inputs: Callable[[Sequence[int]], Tensor]
    names: Sequence[str]

    def take_first(self, most: int) -> "CaptionedImages":
        """Return the first images."""
        return CaptionedImages(self.captions[:most], self.load_inputs, self.names[:most])


@dataclass(frozen=True)
class CaptioningDataset(ABC):
    """Images to train on, and held-out images that are never trained on."""

    config: CaptioningData
    channels: ClassVar[int | None]  # of features; none: pixels, and the network is trained with the task
    endless: ClassVar[bool]

    @property
    @abstractmethod
    def regions(self) -> int:
        """The number of regions of an image."""

    @abstractmethod
    def describe(self) -> Sequence[str]:
        """Return notes on the sizes of the splits, and on what two of them share."""

    @abstractmethod
    def load_training(self, epoch: int) -> CaptionedImages:
        """Return the images of an epoch."""

    @property
    @abstractmethod
    def validation(self) -> CaptionedImages:
        """The images that weights are chosen by."""

    @property
    @abstractmethod
    def tests(self) -> Mapping[str, CaptionedImages]:
        """The images to test on, by the names of their sets."""

    @abstractmethod
    def prepare_photo(self, photo: "Image") -> Tensor:
        """Return a photograph as the encoder takes it."""

    @abstractmethod
    def load_picture(self, collection: CaptionedImages, number: int) -> np.ndarray:
        """Return the pixels of an image, for people to see."""

    @property
    def fingerprint(self) -> str:
        """A hash of the captions: with another one, a resumed run would not go on as it began."""
        splits = (self.load_training(0), self.validation)
        pairs = (pair for split in splits for pair in zip(split.names, split.captions, strict=True))
        return digest(f"{name}\t{'|'.join(captions)}\n".encode() for name, captions in pairs)


@dataclass(frozen=True)
class SceneDataset(CaptioningDataset):
    """Generated scenes, new ones in every epoch."""

    channels, endless = None, True

    @property
    def regions(self) -> int:
        return scenes.ACROSS**2

    def describe(self) -> Sequence[str]:
        count = self.config.held_out
        return [describe_sizes("images", self.config.scenes, count, {"test": count}, endless=True)]

    def load_training(self, epoch: int) -> CaptionedImages:
        return self.draw(self.config.scenes, TRAINING, epoch)

    @property
    def validation(self) -> CaptionedImages:
        return self.draw(self.config.held_out, VALIDATION)

    @property
    def tests(self) -> Mapping[str, CaptionedImages]:
        return {"scenes": self.draw(self.config.held_out, TEST)}

    def draw(self, count: int, *part: int) -> CaptionedImages:
        """Return the scenes of a part, with captions in the language of the data."""
        return draw_scenes((self.config.seed, *part), count, self.config.images, self.config.words)

    def prepare_photo(self, photo: "Image") -> Tensor:
        return as_tensor(resize_to_square(photo, scenes.PIXELS))[None]

    def load_picture(self, collection: CaptionedImages, number: int) -> np.ndarray:
        pixels = collection.load_inputs([number])[0].permute(1, 2, 0).mul(255).round()
        return pixels.to(torch.uint8).numpy()


@lru_cache(maxsize=4)
def draw_scenes(seed: tuple[int, ...], count: int, name: str, cut: WordCut) -> CaptionedImages:
    """Return the scenes of a seed, with captions in the language that the name of the data means."""
    drawn = [scenes.draw_scene([*seed, number]) for number in range(count)]
    images = torch.from_numpy(np.stack([scene.image for scene in drawn])).permute(0, 3, 1, 2)

    def load_inputs(numbers: Sequence[int]) -> Tensor:
        return images[torch.tensor(numbers)].float().div_(255)

    names = [f"scene {number}" for number in range(count)]
    texts = [caption_groups(scene.groups, LANGUAGES[name]) for scene in drawn]
    captions = [tuple(normalize_words(caption, cut) for caption in captions) for captions in texts]
    return CaptionedImages(captions, load_inputs, names)


@dataclass(frozen=True)
class PhotoDataset(CaptioningDataset):
    """Photographs in a folder, each with its captions, as grids of features: one region for each 32 × 32 pixels.

    The folder is opened when its images are asked for: a photograph from elsewhere is captioned without it.
    """

    channels, endless = HEAD, False

    @property
    def regions(self) -> int:
        return (self.config.pixels // OUTPUT_STRIDE) ** 2

    @cached_property
    def folder(self) -> Path:
        """The folder of this name, or that of the data set."""
        name = self.config.images
        folder = find_data(Path(name))
        if folder is None or not folder.is_dir():
            known = name in DATASETS_BY_NAME
            fix = (
                f"run regard data get {name}, or give a folder"
                if known
                else "write scenes, scenes-zh, or a folder's path"
            )
            expected = "scenes, scenes-zh, or a folder with captions.tsv and images"
            raise wrong("data.images", f"no folder {name}", expected, fix)
        return folder

    @cached_property
    def image_files(self) -> ImageFiles:
        """The images that the captions name."""
        return ImageFiles(find_file(self.folder, IMAGE_PATHS, "images", "the images that the captions name"))

    @cached_property
    def table(self) -> Table:
        """The captions, by split and image."""
        return read_captions(self.folder, self.image_files, self.config.words)

    def describe(self) -> Sequence[str]:
        train, validation, test = (self.image_files.compute_checksums(list(self.table[part])) for part in PARTS)
        sizes = describe_sizes("images", len(train), len(validation), {"test": len(test)})
        return [sizes, *describe_overlaps("images", train, {"validation": validation, "test": test})]

    def load_training(self, epoch: int) -> CaptionedImages:
        return self.load_split("train")

    @property
    def validation(self) -> CaptionedImages:
        return self.load_split("validation")

    @property
    def tests(self) -> Mapping[str, CaptionedImages]:
        return {"test": self.load_split("test")}

    @property
    def has_splits(self) -> bool:
        """Whether the folder says itself what is for tests."""
        return names_splits(self.folder)

    def list_captions(self) -> Mapping[str, tuple[str, ...]]:
        """Return the captions of every image of the folder."""
        return {name: captions for part in self.table.values() for name, captions in part.items()}

    def load_split(self, split: str) -> CaptionedImages:
        """Return the images of a split, with their features."""
        return self.load_images(self.table[split])

    def load_images(self, captions: Mapping[str, tuple[str, ...]]) -> CaptionedImages:
        """Return these images with their features, which are computed for all of the folder at once."""
        names = sorted(self.list_captions())
        grids = compute_grids(self.image_files, names, self.config.pixels, cache=self.config.cache)
        numbers = {name: number for number, name in enumerate(names)}
        rows = [numbers[name] for name in captions]

        def load_inputs(chosen: Sequence[int]) -> Tensor:
            return grids[[rows[number] for number in chosen]]

        return CaptionedImages(list(captions.values()), load_inputs, list(captions))

    def prepare_photo(self, photo: "Image") -> Tensor:
        image = as_tensor(resize_to_square(photo, self.config.pixels))[None]
        with torch.inference_mode():
            grid: Tensor = load_network()(image)
        return grid.flatten(2).transpose(1, 2)

    def load_picture(self, collection: CaptionedImages, number: int) -> np.ndarray:
        name = collection.names[number]
        return np.asarray(open_photo(self.image_files.read(name), name))


load_network = cache(load_pretrained)


def build_dataset(config: CaptioningData) -> CaptioningDataset:
    """Return the images that a configuration names; a folder is not opened yet."""
    return SceneDataset(config) if config.images in LANGUAGES else PhotoDataset(config)


def open_dataset(config: CaptioningData) -> CaptioningDataset:
    """Return the images that a configuration names; raise if something is wrong with a folder."""
    dataset = build_dataset(config)
    if isinstance(dataset, PhotoDataset):
        _ = dataset.table
    return dataset
