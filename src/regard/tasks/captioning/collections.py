"""Images with what is right to say of each: scenes that are drawn, or photographs in a folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch

from regard.algebra.shapes import Tensor
from regard.datasets import KNOWN, find
from regard.errors import wrong
from regard.tasks.captioning import scenes
from regard.tasks.captioning.captions import Table, captions_of, found
from regard.tasks.captioning.config import Images
from regard.tasks.data.parts import repeated, sizes
from regard.tasks.images import Pictures, as_tensor, grids_of, open_photo, pretrained, squeezed
from regard.tasks.images.efficientnet import HEAD, SHRINKING

if TYPE_CHECKING:
    from PIL.Image import Image

PLACES = ("images_128.zip", "images.zip", "images", "Images", "Flicker8k_Dataset", "Flickr8k_Dataset")
PARTS = ("train", "validation", "test")
TRAINING, VALIDATION, TEST = range(3)  # what keeps the seeds of scenes apart


class Collection(NamedTuple):
    """Images by number: `look` gives what an encoder is given of some of them, `captions` all that is right of each."""

    captions: Sequence[tuple[str, ...]]
    look: Callable[[Sequence[int]], Tensor]
    names: Sequence[str]

    def first(self, most: int) -> "Collection":
        """Some from the beginning."""
        return Collection(self.captions[:most], self.look, self.names[:most])


@runtime_checkable
class Album(Protocol):
    """Images to learn from, and others that are never learned from."""

    @property
    def regions(self) -> int: ...

    @property
    def channels(self) -> int | None: ...

    @property
    def endless(self) -> bool: ...

    def about(self) -> Sequence[str]: ...

    def training(self, epoch: int) -> Collection: ...

    def validation(self) -> Collection: ...

    def tests(self) -> Mapping[str, Collection]: ...

    def prepared(self, photo: "Image") -> Tensor: ...

    def picture(self, collection: Collection, number: int) -> np.ndarray: ...


@dataclass(frozen=True)
class Scenes:
    """Drawings without end."""

    config: Images
    channels: int | None = None  # pixels: the network that looks at them is learned with the task
    endless: bool = True

    @property
    def regions(self) -> int:
        """A region for each cell."""
        return scenes.ACROSS**2

    def about(self) -> Sequence[str]:
        """How many scenes each part has."""
        own = self.config
        return [sizes("images", own.scenes, own.held_out, {"test": own.held_out}, endless=True)]

    def training(self, epoch: int) -> Collection:
        return drawn_collection((self.config.seed, TRAINING, epoch), self.config.scenes)

    def validation(self) -> Collection:
        return drawn_collection((self.config.seed, VALIDATION), self.config.held_out)

    def tests(self) -> Mapping[str, Collection]:
        return {"scenes": drawn_collection((self.config.seed, TEST), self.config.held_out)}

    def prepared(self, photo: "Image") -> Tensor:
        """A photograph as the encoder is given it."""
        return as_tensor(squeezed(photo, scenes.PIXELS))[None]

    def picture(self, collection: Collection, number: int) -> np.ndarray:
        """An image as it is drawn."""
        pixels = collection.look([number])[0].permute(1, 2, 0).mul(255).round()
        return pixels.to(torch.uint8).numpy()


@lru_cache(maxsize=4)
def drawn_collection(seed: tuple[int, ...], count: int) -> Collection:
    """So many scenes of a seed."""
    made = [scenes.scene([*seed, number]) for number in range(count)]
    images = torch.from_numpy(np.stack([one.image for one in made])).permute(0, 3, 1, 2)

    def look(numbers: Sequence[int]) -> Tensor:
        return images[torch.tensor(numbers)].float().div_(255)

    return Collection([one.captions for one in made], look, [f"scene {number}" for number in range(count)])


@dataclass(frozen=True)
class Photos:
    """Photographs in a folder, each with its captions, as grids of features.

    The folder is opened when its images are asked for: a photograph from elsewhere is captioned without it.
    """

    config: Images
    channels: int | None = HEAD
    endless: bool = False

    @property
    def regions(self) -> int:
        """A region for each 32 × 32 pixels."""
        return (self.config.pixels // SHRINKING) ** 2

    @cached_property
    def folder(self) -> Path:
        """As it is named, or where data is looked for."""
        folder = find(Path(self.config.images))
        if folder is None or not folder.is_dir():
            own = self.config.images
            fix = f"run regard data get {own}, or give a folder" if own in KNOWN else "write scenes, or a folder's path"
            expected = "scenes, or a folder with captions.tsv and images"
            raise wrong("data.images", f"no folder {own}", expected, fix)
        return folder

    @cached_property
    def pictures(self) -> Pictures:
        return Pictures(found(self.folder, PLACES, "images", "the images that the captions name"))

    @cached_property
    def table(self) -> Table:
        return captions_of(self.folder, self.pictures)

    def about(self) -> Sequence[str]:
        """How many images each part has, and how many are the same file under two names."""
        learned, checked, test = (self.pictures.sums(list(self.table[part])) for part in PARTS)
        counted = sizes("images", len(learned), len(checked), {"test": len(test)})
        return [counted, *repeated("images", learned, {"validation": checked, "test": test})]

    def training(self, epoch: int) -> Collection:
        return self.collection("train")

    def validation(self) -> Collection:
        return self.collection("validation")

    def tests(self) -> Mapping[str, Collection]:
        return {"test": self.collection("test")}

    def collection(self, split: str) -> Collection:
        """The images of a part, with their features."""
        names = sorted(name for part in self.table.values() for name in part)
        grids = grids_of(self.pictures, names, self.config.pixels, cache=self.config.cache)
        numbers = {name: number for number, name in enumerate(names)}
        own = [numbers[name] for name in self.table[split]]

        def look(chosen: Sequence[int]) -> Tensor:
            return grids[[own[number] for number in chosen]]

        return Collection(list(self.table[split].values()), look, list(self.table[split]))

    def prepared(self, photo: "Image") -> Tensor:
        """A photograph as the encoder is given it."""
        image = as_tensor(squeezed(photo, self.config.pixels))[None]
        with torch.inference_mode():
            grid: Tensor = network()(image)
        return grid.flatten(2).transpose(1, 2)

    def picture(self, collection: Collection, number: int) -> np.ndarray:
        """An image as it is in its file."""
        name = collection.names[number]
        return np.asarray(open_photo(self.pictures.read(name), name))


network = cache(pretrained)


def album_of(config: Images) -> Album:
    """The images that a configuration names; a folder is not opened yet."""
    return Scenes(config) if config.images == "scenes" else Photos(config)


def open_album(config: Images) -> Album:
    """The same, opened: what is wrong with a folder is said now."""
    album = album_of(config)
    if isinstance(album, Photos):
        _ = album.table
    return album
