"""Images with what is right to say of each: scenes that are drawn, or photographs in a folder."""

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch

from regard.errors import wrong
from regard.shapes import Tensor
from regard.tasks.captioning import scenes
from regard.tasks.captioning.config import Images
from regard.tasks.images import Pictures, as_tensor, grids_of, open_photo, pretrained, squeezed
from regard.tasks.images.efficientnet import HEAD, SHRINKING

SPLITS = {"train": "train", "dev": "validation", "val": "validation", "validation": "validation", "test": "test"}
TABLES = ("captions.tsv", "captions.tsv.gz")
PLACES = ("images_128.zip", "images.zip", "images", "Images")
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

    def training(self, epoch: int) -> Collection: ...

    def validation(self) -> Collection: ...

    def tests(self) -> Mapping[str, Collection]: ...

    def prepared(self, photo: Path) -> Tensor: ...

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

    def training(self, epoch: int) -> Collection:
        return drawn_collection((self.config.seed, TRAINING, epoch), self.config.scenes)

    def validation(self) -> Collection:
        return drawn_collection((self.config.seed, VALIDATION), self.config.held_out)

    def tests(self) -> Mapping[str, Collection]:
        return {"scenes": drawn_collection((self.config.seed, TEST), self.config.held_out)}

    def prepared(self, photo: Path) -> Tensor:
        """A file as the encoder is given it."""
        return as_tensor(squeezed(open_photo(photo), scenes.PIXELS))[None]

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
    """Photographs in a folder, each with its captions, as grids of features."""

    config: Images
    pictures: Pictures
    table: Mapping[str, Mapping[str, tuple[str, ...]]]  # by split, then by image
    channels: int | None = HEAD
    endless: bool = False

    @property
    def regions(self) -> int:
        """A region for each 32 × 32 pixels."""
        return (self.config.pixels // SHRINKING) ** 2

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

    def prepared(self, photo: Path) -> Tensor:
        """A file as the encoder is given it."""
        image = as_tensor(squeezed(open_photo(photo), self.config.pixels))[None]
        with torch.inference_mode():
            grid: Tensor = network()(image)
        return grid.flatten(2).transpose(1, 2)

    def picture(self, collection: Collection, number: int) -> np.ndarray:
        """An image as it is in its file."""
        name = collection.names[number]
        return np.asarray(open_photo(self.pictures.read(name), name))


network = cache(pretrained)


def open_album(config: Images) -> Album:
    """The images that a configuration names."""
    if config.images == "scenes":
        return Scenes(config)
    folder = Path(config.images)
    if not folder.is_dir():
        fix = "write scenes, or the path of a folder"
        raise wrong("data.images", f"no folder {folder}", "scenes, or a folder with captions.tsv and images", fix)
    table = found(folder, TABLES, "captions", "lines of split, image and caption, with tabs between")
    pictures = Pictures(found(folder, PLACES, "images", "the images that the captions name"))
    return Photos(config, pictures, read_captions(table, pictures))


def found(folder: Path, names: Sequence[str], what: str, meaning: str) -> Path:
    """The first of these that is in the folder."""
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise wrong(what, f"none in {folder}", f"{' or '.join(names)}: {meaning}", "put it there")


def read_captions(path: Path, pictures: Pictures) -> dict[str, dict[str, tuple[str, ...]]]:
    """Captions by split and image. Each line has its split, so that all who use the data compare the same."""
    table: dict[str, dict[str, tuple[str, ...]]] = {"train": {}, "validation": {}, "test": {}}
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            parts = line.rstrip("\n").split("\t")
            if len(parts) != 3 or parts[0] not in SPLITS:
                expected = f"one of {', '.join(SPLITS)}, an image and a caption, with tabs between"
                raise wrong(f"{path.name}, line {number}", repr(line.strip()[:60]), expected, "correct that line")
            split, name, caption = SPLITS[parts[0]], parts[1], plain(parts[2])
            table[split][name] = (*table[split].get(name, ()), caption)
    check_table(table, path, pictures)
    return table


def check_table(table: Mapping[str, Mapping[str, tuple[str, ...]]], path: Path, pictures: Pictures) -> None:
    """Raises where a part, a caption or an image is missing."""
    for split, images in table.items():
        if not images:
            raise wrong(path.name, f"no captions for {split}", "some of each part", "name the part at the line's start")
        for name, captions in images.items():
            if not all(captions):
                fix = "write a caption, or take the line out"
                raise wrong(path.name, f"an empty caption of {name}", "some words", fix)
            if name not in pictures.members:
                fix = "bring the image back, or take its captions out"
                raise wrong("images", f"no {name} in {pictures.place}", "an image for every caption", fix)


def plain(caption: str) -> str:
    """Lower case, without tokens that have neither letter nor digit: what captioners are compared on.

    >>> plain("A dog , running .")
    'a dog running'
    """
    return " ".join(word for word in caption.lower().split() if any(sign.isalnum() for sign in word))
